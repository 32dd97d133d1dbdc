"""register_colibri_tool: Specification 16.5, 16.6."""

import pytest
from msgspec import Struct

from colibri.server import ColibriToolConfig, create_server, register_colibri_tool
from tests.contract import Linked
from tests.contract.requirement import requirement


class Greeting(Struct):
    name: str = "you"


class Answer(Struct):
    text: str


def greet(args: Greeting) -> Answer:
    return Answer(text=f"hello {args.name}")


GREET = ColibriToolConfig(title="Greet", description="Say hello.", input_schema=Greeting)


@requirement("000:T-8")
def test_server_ping_can_be_registered_before_the_server_is_connected() -> None:
    """T-8; Specification 16.6: and is then among the tools."""
    ctx = create_server(mode="FULL")
    register_colibri_tool(
        ctx, "server_ping", ColibriToolConfig(input_schema=Greeting, lane="probe"), greet
    )
    assert ctx.is_connected() is False
    assert [tool.name for tool in ctx.parts.admission.admitted()] == ["server_ping"]


@requirement("000:T-8")
def test_a_registered_tool_is_listed_and_can_be_called() -> None:
    """T-8; Specification 16.6: a client can use it, struct in and struct out."""
    server = Linked()
    config = ColibriToolConfig(
        title="Greet", description="Say hello.", input_schema=Greeting, output_schema=Answer
    )
    register_colibri_tool(server.ctx, "greet", config, greet)
    with server:
        assert server.data("greet", {"name": "Ada"}) == {"text": "hello Ada"}
    listing = server.ctx.parts.admission.tools["greet"].listing
    assert listing["title"] == "Greet"
    assert listing["description"] == "Say hello."
    assert listing["inputSchema"]["properties"]["name"]["type"] == "string"
    assert listing["outputSchema"]["properties"]["data"]["properties"] == {"text": {}}


@requirement("000:T-8")
def test_a_connected_server_takes_no_more_tools() -> None:
    """Specification 16.6: tools are registered before start."""
    with Linked() as server, pytest.raises(ValueError, match="the server is connected already"):
        register_colibri_tool(server.ctx, "greet", GREET, greet)


@requirement("000:T-9", "000:4e:twice")
def test_a_name_can_be_registered_once() -> None:
    """T-9; Specification 16.6: the error names it."""
    ctx = create_server(mode="FULL")
    register_colibri_tool(ctx, "greet", GREET, greet)
    with pytest.raises(ValueError, match=r"^tool already registered: greet$"):
        register_colibri_tool(ctx, "greet", GREET, greet)


@requirement("000:T-10", "000:4e:name")
@pytest.mark.parametrize(
    "name", ["server-ping", "", "Ping", "1st", "a b", "a.b", "greet\n", "größe", None, 7]
)
def test_an_invalid_name_is_refused(name: str) -> None:
    """T-10; Specification 16.6: ^[a-z_][a-z0-9_]*$."""
    ctx = create_server(mode="FULL")
    with pytest.raises(ValueError, match="invalid tool name: ") as caught:
        register_colibri_tool(ctx, name, GREET, greet)
    assert str(caught.value) == f"invalid tool name: {name}"
    assert ctx.parts.admission.admitted() == []


@requirement("000:4e:name")
@pytest.mark.parametrize("name", ["a", "_", "_x9", "task_next_actions"])
def test_a_snake_case_name_is_taken(name: str) -> None:
    """Specification 16.6."""
    ctx = create_server(mode="FULL")
    register_colibri_tool(ctx, name, GREET, greet)
    assert [tool.name for tool in ctx.parts.admission.admitted()] == [name]


@requirement("000:T-11", "000:4e:schema")
@pytest.mark.parametrize("schema", [dict, {"type": "object"}, None, Greeting(), int])
def test_an_input_schema_that_is_not_a_struct_is_refused(schema: type) -> None:
    """T-11; Specification 16.6: a msgspec Struct."""
    ctx = create_server(mode="FULL")
    with pytest.raises(ValueError, match=r"^input_schema must be a msgspec Struct$"):
        register_colibri_tool(ctx, "greet", ColibriToolConfig(input_schema=schema), greet)
    assert ctx.parts.admission.admitted() == []


@requirement("000:1a:types")
def test_a_lane_that_does_not_exist_is_refused() -> None:
    """Specification 3.1, 16.5: there are three lanes."""
    ctx = create_server(mode="FULL")
    config = ColibriToolConfig(input_schema=Greeting, lane="fast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^lane must be one of probe, read, write$"):
        register_colibri_tool(ctx, "greet", config, greet)
