"""Reads OTLP export requests with the types that are generated from the protocol's own schema, and prints the spans as JSON.

Usage: otlp.py FILE         protobuf
       otlp.py --json FILE  JSON, one request a line
"""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def requests(path, is_json):
    data = open(path, "rb").read()
    if is_json:
        for line in data.splitlines():
            # OTLP's JSON has ids in hex where protobuf's own has base64.
            yield json_format.ParseDict(with_base64_ids(json.loads(line)), ExportTraceServiceRequest())
        return
    request = ExportTraceServiceRequest()
    assert request.ParseFromString(data) == len(data)
    yield request


def with_base64_ids(value):
    if isinstance(value, list):
        return [with_base64_ids(item) for item in value]
    if isinstance(value, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else with_base64_ids(item)
            for key, item in value.items()
        }
    return value


def span(found):
    attributes = {one.key: one.value for one in found.attributes}
    return {
        "trace": found.trace_id.hex(),
        "id": found.span_id.hex(),
        "parent": found.parent_span_id.hex(),
        "name": found.name,
        "begin": found.start_time_unix_nano,
        "end": found.end_time_unix_nano,
        "status": found.status.code,
        "operation": attributes["gen_ai.operation.name"].string_value,
    }


is_json = sys.argv[1] == "--json"
spans = [
    span(found)
    for request in requests(sys.argv[-1], is_json)
    for resource in request.resource_spans
    for scope in resource.scope_spans
    for found in scope.spans
]
print(json.dumps(spans))
