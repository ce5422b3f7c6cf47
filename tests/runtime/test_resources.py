"""State by name, in containers."""

from __future__ import annotations

import threading

from thalweg.runtime.resources import ResourceManager, Variable

V = ("variable", "", "v")
W = ("variable", "box", "w")


def test_a_variable_is_made_once() -> None:
    resources = ResourceManager()
    assert resources.find(V) is None
    made = resources.variable(V)
    assert made.value is None and made.name == "v"
    assert resources.variable(V) is made is resources.find(V)
    assert resources.variable(("variable", "box", "v")) is not made
    assert resources.variable(("node", "", "v")) is not made


def test_an_initial_value_does_not_replace_what_is_there() -> None:
    resources = ResourceManager()
    assert resources.variable(V, 1).value == 1
    assert resources.variable(V, 2).value == 1


def test_removing_and_clearing_raise_the_generation() -> None:
    resources = ResourceManager()
    v, w = resources.variable(V), resources.variable(W)
    start = resources.generation
    assert resources.remove(V) and not resources.remove(V)
    assert resources.variable(V) is not v
    resources.clear(["box"])
    assert resources.variable(W) is not w
    kept = resources.variable(V)
    resources.clear([""])
    assert resources.find(V) is None and resources.find(W) is not None
    resources.clear()
    assert resources.find(W) is None
    assert resources.generation > start + 3
    assert kept.value is None


def test_threads_that_ask_at_once_get_the_same() -> None:
    resources = ResourceManager()
    start, found = threading.Barrier(8), []

    def ask() -> None:
        start.wait(10)
        found.append(resources.get_or_create(("queue", "", "q"), object))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(10)
    assert len(found) == 8 and len(set(map(id, found))) == 1


def test_what_is_shown() -> None:
    assert repr(Variable(V)) == "<runtime.Variable v>"
