"""Tests of start: what holds before Snakemake does anything."""

import pytest

from workflow_scripts.start import use_huge_pages


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (None, "glibc.malloc.hugetlb=1"),
        ("glibc.malloc.arena_max=2", "glibc.malloc.arena_max=2:glibc.malloc.hugetlb=1"),
        ("glibc.malloc.hugetlb=0", "glibc.malloc.hugetlb=0"),
    ],
)
def test_programs_ask_for_huge_pages_unless_the_user_has_chosen(chosen, wanted):
    environment = {} if chosen is None else {"GLIBC_TUNABLES": chosen}
    use_huge_pages(environment)
    assert environment == {"GLIBC_TUNABLES": wanted}
    use_huge_pages(environment)
    assert environment == {"GLIBC_TUNABLES": wanted}
