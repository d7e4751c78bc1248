"""intrinsic_dimension: how many dimensions the states of a layer really fill, by the distances of each text's two nearest neighbours."""

import numpy as np

from crossgap import analysis


@analysis("intrinsic-dimension", label="intrinsic dimension (TwoNN)", decimals=1, source="Facco et al. 2017")
def intrinsic_dimension(states):
    """The maximum-likelihood estimate: n / Σ ln(r₂ / r₁), where r₁ and r₂ are the distances of the two nearest neighbours."""
    different = np.unique(states, axis=0)
    squared = (different**2).sum(axis=1)
    distances = squared[:, None] + squared[None] - 2 * different @ different.T
    np.fill_diagonal(distances, np.inf)
    nearest = np.sqrt(np.maximum(np.partition(distances, 1, axis=1)[:, :2], 1e-12))
    return len(different) / np.log(nearest[:, 1] / nearest[:, 0]).sum()
