"""Encodes rows as Parquet or as gzipped JSON lines, page by page. The same rows make the same bytes."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from foliot.model.archive import COLUMNS, Kind, Type

Format = Literal["parquet", "jsonl"]
SUFFIXES: Mapping[Format, str] = {"parquet": "parquet", "jsonl": "jsonl.gz"}
COMPRESSION = 6
encode_json = msgspec.json.Encoder().encode


class Encoder(Protocol):
    def add(self, rows: Sequence[Mapping[str, Any]]) -> None: ...

    def finish(self) -> bytes: ...


def encoder_of(kind: Kind, form: Format) -> Encoder:
    return ParquetRows(kind) if form == "parquet" else JsonLines(kind)


class JsonLines:
    def __init__(self, kind: Kind) -> None:
        self._columns = COLUMNS[kind]
        self._buffer = io.BytesIO()
        # Without a time and a name in its header, so that the same rows make the same bytes.
        self._file = gzip.GzipFile(filename="", mode="wb", fileobj=self._buffer, compresslevel=COMPRESSION, mtime=0)

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            line = {name: _as_json(row[name], kind) for name, kind in self._columns.items()}
            self._file.write(encode_json(line) + b"\n")

    def finish(self) -> bytes:
        self._file.close()
        return self._buffer.getvalue()


class ParquetRows:
    def __init__(self, kind: Kind) -> None:
        import pyarrow
        from pyarrow import parquet

        self._arrow = pyarrow
        self._columns = COLUMNS[kind]
        text = pyarrow.string()
        types = {
            "id": text, "ids": pyarrow.list_(text), "text": text, "number": pyarrow.int64(), "json": text,
            "output": text, "time": pyarrow.timestamp("us", tz="UTC"),
        }  # fmt: skip
        self._schema = pyarrow.schema([(name, types[column]) for name, column in self._columns.items()])
        self._buffer = pyarrow.BufferOutputStream()
        self._writer = parquet.ParquetWriter(self._buffer, self._schema, compression="zstd")

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        values = [[_plain(row[name], kind) for row in rows] for name, kind in self._columns.items()]
        arrays = [self._arrow.array(column, field.type) for column, field in zip(values, self._schema, strict=True)]
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))

    def finish(self) -> bytes:
        self._writer.close()
        content: bytes = self._buffer.getvalue().to_pybytes()
        return content


def _plain(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    match kind:
        case "id":
            return str(value)
        case "ids":
            return [str(one) for one in value]
        case "output":
            return bytes(value).decode("utf-8", "replace")
        case "json":
            # A lone surrogate is valid in JSON only as an escape, which it stays.
            return value
    return value


def _as_json(value: Any, kind: Type) -> Any:
    if kind == "json" and value is not None:
        # A newline in JSON is a blank, since strings have it escaped.
        return msgspec.Raw(value.replace("\n", " ").replace("\r", " ").encode())
    return _plain(value, kind)
