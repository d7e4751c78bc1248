"""auto_head: heads that transformers lacks, opened in the manner of its Auto classes."""

from typing import Any

from transformers import PreTrainedModel


class AutoHead:
    """A head on models of several configurations. Subclasses say by which class of networks."""

    @classmethod
    def class_of(cls, config: type) -> Any:
        """The class of networks with the head, by the class of their configuration."""
        raise NotImplementedError

    @classmethod
    def from_config(cls, config: Any) -> Any:
        """A network of this configuration with the head, and random weights."""
        return cls.class_of(type(config))(config)

    @classmethod
    def from_pretrained(cls, folder: Any, *, config: Any, **settings: Any) -> Any:
        """The network in a folder with the head."""
        return cls.class_of(type(config)).from_pretrained(folder, config=config, **settings)


def base_of(body: Any) -> Any:
    """The class on which transformers builds `body`, a network without a head, and those with a head."""
    return next(each for each in body.__mro__[1:] if issubclass(each, PreTrainedModel))
