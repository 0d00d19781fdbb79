"""What all answers share: the JSON that doors show, the JSON that rebuilds an answer, and the schema of the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

LAZY: Final = ConfigDict(defer_build=True)
"""The configuration of an answer: its checks are made when they are first needed."""
_FIRST: Final = ("message", "id")

Id = Annotated[int, PlainSerializer(str, return_type=str, when_used="json")]
Share = Annotated[float, Field(ge=0, le=1)]


M = TypeVar("M", bound=BaseModel)


class DescribedBy:
    """Gives what a serializer makes by hand the JSON schema of a type, or of some of its fields with some added."""

    def __init__(
        self, kind: Any, names: Collection[str] = (), optional: Collection[str] = (), **added: Mapping[str, str]
    ) -> None:
        self._kind = kind
        self._names = {*names, *optional}
        self._optional = optional
        self._added = added

    def __get_pydantic_json_schema__(self, _: Any, handler: GetJsonSchemaHandler) -> Any:
        whole = TypeAdapter(self._kind).core_schema
        body = handler(core_schema.definitions_schema(whole, []))  # bare it would lose its own description
        if not self._names:
            return body
        whole = reduced_schema(handler.resolve_ref_schema(body), self._names)
        required = [name for name in whole["required"] if name not in self._optional]
        required += [name for name in self._added if name not in self._optional]
        return whole | {"properties": whole["properties"] | self._added, "required": required}


def reduced_schema(body: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the JSON schema of an object with only the named properties."""
    properties = {name: schema for name, schema in body["properties"].items() if name in names}
    return body | {"properties": properties, "required": [name for name in body.get("required", ()) if name in names]}


class Answer:
    """What all answers share: the form that doors show, and its JSON schema.

    `internal` fields are not shown, nor optional ones that are empty. A list of answers is shown as an object that has
    it under the name `plural`.
    """

    internal: ClassVar[frozenset[str]] = frozenset()
    plural: ClassVar[str] = ""
    __pydantic_fields__: ClassVar[dict[str, FieldInfo]]

    def public(self) -> Mapping[str, object] | None:
        """Return the body that doors show in place of the fields; the return type gives the schema."""
        return None

    @model_serializer(mode="wrap")
    def _serialized(self, fields: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
        return fields(self) if info.round_trip else self.public() or self._public_fields(fields(self))

    def _public_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that say something, with times to the second."""
        optional = {name for name, field in self.__pydantic_fields__.items() if not field.is_required()}
        body: dict[str, Any] = {name: fields[name] for name in _FIRST if name in fields}
        for name, value in fields.items():
            time = getattr(self, name, None)
            if name not in self.internal and not (name in optional and value in (None, "", [])):
                body[name] = time.isoformat(timespec="seconds") if isinstance(time, datetime) else value
        return body

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> Any:
        if handler.mode == "validation":  # as clients get it that build it again
            return handler(schema)
        if cls.public is not Answer.public:
            kind = get_type_hints(cls.public, include_extras=True)["return"]
            return DescribedBy(kind).__get_pydantic_json_schema__(schema, handler)
        body = handler.resolve_ref_schema(handler({name: schema[name] for name in schema if name != "serialization"}))
        body.update(
            reduced_schema(body, body["properties"].keys() - cls.internal)
        )  # in place, since others refer to it
        return body


@dataclass(frozen=True, config=LAZY)
class Failure(Answer):
    """Why a request was refused, and the name of the error for programs."""

    message: str
    error: str


def without_checks(declared: type[BaseModel]) -> Callable[[type[M]], type[M]]:
    """Return a decorator by which an answer takes the fields of `declared` unchecked: they were checked before."""
    kinds = get_type_hints(declared)  # without what stands beside the types

    def relaxed(answer: type[M]) -> type[M]:
        for name in declared.model_fields:
            answer.model_fields[name].annotation, answer.model_fields[name].metadata = kinds[name], []
        return answer

    return relaxed
