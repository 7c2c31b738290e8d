"""Is the installed service the one that would be installed now?"""

from dataclasses import replace
from pathlib import Path
from typing import List, Tuple

from companion.service import judgement
from companion.service import plan as plans
from tests.companion.service.conftest import World


def judge(world: World, command: List[str], *environment: Tuple[str, str]) -> List[str]:
    """What is wrong with it."""
    return list(judgement.judge(world.context(), command, environment).wrong)


def test_the_same_command_is_right(world: World) -> None:
    """Under another name of the same files too."""
    context = world.context()
    link = world.folder / "link.pyz"
    link.symlink_to(world.program)
    for program in (world.program, link):
        verdict = judgement.judge(context, [context.interpreter, str(program)], [])
        assert verdict.wrong == () and verdict.plan.program == str(program)


def test_what_is_gone_or_another_one_is_named(world: World) -> None:
    """Interpreter, program and tools, each with its path."""
    python = world.context().interpreter
    other = world.tool("other")
    assert judge(world, ["/gone/py", "/gone/mdello.pyz"]) == [
        "its interpreter /gone/py is gone",
        "its program /gone/mdello.pyz is gone",
    ]
    assert judge(world, [other, other]) == [
        f"its interpreter is {other}, this is {python}",
        f"its program is {other}, this is {world.program}",
    ]
    assert judge(world, []) == ["it names no interpreter", "it names no program"]
    assert judge(world, [python, str(world.program)], ("GH_PATH", "/gone/gh"), ("OTHER_PATH", "/gone")) == [
        "GH_PATH is /gone/gh, which is gone"
    ]


def test_what_cannot_be_compared_is_no_complaint(world: World) -> None:
    """Of ourselves nothing may be left to look at."""
    context = replace(world.context(), interpreter="/gone/py", program=Path("/gone/mdello.pyz"))
    verdict = judgement.judge(context, [world.tool("python"), str(world.program)], [])
    assert verdict.wrong == ()


def test_tools_that_were_chosen_then_are_no_difference(world: World) -> None:
    """Another one may be on PATH by now."""
    world.tool("gh")
    mine = world.tool("mine")
    context = world.context()
    verdict = judgement.judge(context, [context.interpreter, str(world.program)], [("GH_PATH", mine)])
    assert dict(verdict.plan.environment)["GH_PATH"] == mine


def test_it_is_told_for_people(world: World) -> None:
    """What runs, where, and what it knows."""
    plan = plans.make(world.context())
    assert judgement.told(plan) == [
        f"Runs {world.program} with {plan.interpreter} on port 51999",
        "Tools: none of gh, jira, herdr and tmux was found",
    ]
    gh = world.tool("gh")
    assert judgement.told(plans.make(world.context()))[1] == f"Tools: GH_PATH={gh}"
