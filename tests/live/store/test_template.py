"""Commands with a part that is packed once: the same bytes as a command that is packed at once."""

from hypothesis import given
from hypothesis import strategies as st

from evenly.live.store.link import Template, pack

ARGUMENTS = st.lists(st.binary() | st.text(st.characters(codec="utf-8")) | st.integers() | st.floats())


@given(ARGUMENTS, ARGUMENTS)
def test_a_filled_template_is_the_whole_command(first: list[bytes], rest: list[bytes]) -> None:
    assert Template("FCALL", *first).fill(*rest) == pack("FCALL", *first, *rest)
