"""Names and keys of two namespaces never collide."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foliot.model.namespace import Namespace, bare, bare_key, namespace_of

NAMES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,20}", fullmatch=True)


NAMESPACES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True)


KEYS = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)


@given(NAMESPACES, NAMES, NAMESPACES, NAMES)
def test_names_of_two_namespaces_never_collide(first: str, name: str, second: str, other: str) -> None:
    one, two = Namespace(first), Namespace(second)
    assert (one.qualified(name) == two.qualified(other)) == ((first, name) == (second, other))
    assert namespace_of(one.qualified(name)) == first
    assert bare(one.qualified(name)) == name
    assert one.owns(one.qualified(name))
    assert one.owns(two.qualified(other)) == (first == second)


@given(NAMESPACES, KEYS, NAMESPACES, KEYS)
def test_keys_of_two_namespaces_never_collide(first: str, key: str, second: str, other: str) -> None:
    one, two = Namespace(first), Namespace(second)
    assert (one.qualified_key(key) == two.qualified_key(other)) == ((first, key) == (second, other))
    assert bare_key(one.qualified_key(key)) == key
