"""What a tool is: a verb of the engine, described for a model, with schemas for what it takes and what it answers.

A tool is a function `(visit, *, arguments) -> Told`. Its docstring is what the model reads; the schemas are drawn from
its signature, without the titles and the nulls that say nothing to a reader: the whole list is read in every
conversation, so each word of it is paid for again and again.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast, get_args

import mcp_types as types
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from recollect.doors.mcp.visits import Visit
from recollect.errors import InvalidInput
from recollect.model import Scope
from recollect.wording import cannot_be, place_of

Schema = dict[str, Any]
Data = TypeVar("Data", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True)
class Told(Generic[Data]):
    """An answer twice: in few words for a model, and as data for a program."""

    text: str
    data: Data


@dataclass(frozen=True, kw_only=True, slots=True)
class Hints:
    """What a tool does to what is remembered. `destructive`: it changes what is there, and does not only add."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    def annotations(self) -> types.ToolAnnotations:
        if self.read_only:  # the others say nothing then
            return types.ToolAnnotations(read_only_hint=True)
        return types.ToolAnnotations(destructive_hint=self.destructive, idempotent_hint=self.idempotent or None)


READS = Hints(read_only=True)
ADDS = Hints()
ADDS_ONCE = Hints(idempotent=True)
CHANGES_ONCE = Hints(destructive=True, idempotent=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """One tool; whoever holds any of the scopes may use it."""

    name: str
    about: str
    scopes: tuple[Scope, ...]
    hints: Hints
    arguments: type[BaseModel]
    answer: type[BaseModel]
    act: Callable[..., Awaitable[Told[Any]]]

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            description=self.about,
            input_schema=slim(self.arguments.model_json_schema()),
            output_schema=slim_answer(self.answer.model_json_schema(mode="serialization")),
            annotations=self.hints.annotations(),
        )

    async def call(self, visit: Visit, given: Mapping[str, Any]) -> types.CallToolResult:
        visit.need(self.scopes)
        arguments = checked(self.arguments, given, self.name)
        answer = await self.act(visit, **{name: getattr(arguments, name) for name in type(arguments).model_fields})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=answer.data.model_dump(mode="json", exclude_none=True),
        )


Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], given: object, name: str) -> Model:
    """What was given as what it should be; InvalidInput with the first thing that is wrong with it."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(_sentence(error.errors()[0], name, model)) from error


def _sentence(error: Mapping[str, Any], name: str, model: type[BaseModel]) -> str:
    if not error["loc"]:
        return f"This is not {name}: it is an object with {', '.join(model.model_fields)}."
    argument = place_of(error["loc"])
    match error["type"]:
        case "missing":
            return f"{name} needs {argument}."
        case "extra_forbidden":
            return f"{name} has no argument {argument!r}: it has {', '.join(model.model_fields)}."
    return cannot_be(argument, error) + "."


def tool(*scopes: Scope, hints: Hints) -> Callable[[Callable[..., Awaitable[Told[Any]]]], Tool]:
    """Make a function a tool, for callers who hold one of these scopes."""

    def make(function: Callable[..., Awaitable[Told[Any]]]) -> Tool:
        signature = inspect.signature(function, eval_str=True)
        (answer,) = get_args(signature.return_annotation)
        return Tool(
            name=function.__name__,
            about=" ".join(inspect.cleandoc(function.__doc__ or "").split()),
            scopes=scopes,
            hints=hints,
            arguments=_arguments(function.__name__, signature),
            answer=answer,
            act=function,
        )

    return make


def _arguments(name: str, signature: inspect.Signature) -> type[BaseModel]:
    _, *parameters = signature.parameters.values()
    fields: dict[str, Any] = {
        parameter.name: (
            parameter.annotation,
            ... if parameter.default is inspect.Parameter.empty else parameter.default,
        )
        for parameter in parameters
    }
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _unpacked(given: object) -> object:
    """Some clients send lists and objects as the text of their JSON."""
    if isinstance(given, str) and given.lstrip().startswith(("[", "{")):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given
    return given


Packed = BeforeValidator(_unpacked)

# -- arguments that several tools have

Budget = Annotated[int, Field(ge=200, le=100_000)]


# -- schemas

# What a reader of the list can do without: whoever breaks a limit is told so.
SILENT = frozenset(
    {
        *("title", "$defs", "format", "default", "additionalProperties"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
    }
)


def slim(schema: Schema) -> Schema:
    """A schema that says as much in fewer words: definitions in their place, no titles, no nulls, no limits."""
    return cast("Schema", _slim(schema, schema.get("$defs", {})))


def slim_answer(schema: Schema) -> Schema:
    """The same for an answer: what it holds, by name. Its types can be seen in it."""
    slimmed = slim(schema)
    return {"type": "object", "properties": {name: _bare(part) for name, part in slimmed["properties"].items()}}


def _bare(part: Schema) -> Schema:
    inner = part.get("items", {}).get("properties", {})
    return {"type": "array", "items": {"properties": {name: {} for name in inner}}} if inner else {}


def _slim(part: Any, definitions: Schema) -> Any:
    if isinstance(part, list):
        return [_slim(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _slim({**definitions[part["$ref"].rpartition("/")[2]], **_beside(part, "$ref")}, definitions)
    if "anyOf" in part:
        (only,) = [option for option in part["anyOf"] if option.get("type") != "null"]
        return _slim({**only, **_beside(part, "anyOf")}, definitions)
    slimmed = {name: _slim(value, definitions) for name, value in part.items() if name not in {*SILENT, "properties"}}
    # What is named there are arguments, and none of them is silent.
    named = {name: _slim(value, definitions) for name, value in part.get("properties", {}).items()}
    return {**slimmed, "properties": named} if named else slimmed


def _beside(part: Schema, name: str) -> Schema:
    return {other: value for other, value in part.items() if other != name}
