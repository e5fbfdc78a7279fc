//! `/api/openapi.json`: the API described as OpenAPI 3.1, made of the table of routes and the table of problems.
//!
//! What a route takes and gives stands here; its address, its method and its refusals come from the table, so the
//! description has no address more and none less. The numbers in it are the policy's.

use policy::limits;
use serde_json::{Map, Value, json};

use crate::problem::Kind;
use crate::route::{ROUTES, Route};

/// The description.
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tinyfiles",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Saves that the server cannot read, and calls of the Python functions of works. Same origin only.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {
                "Problem": {
                    "type": "object",
                    "description": "RFC 9457. What each `type` means stands at its address.",
                    "required": ["type", "title", "status"],
                    "properties": {
                        "type": {"enum": Kind::ALL.iter().map(|k| format!("/problems.html#{}", k.name())).collect::<Vec<_>>()},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                    },
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = takes_and_gives(route.name);
    operation["operationId"] = route.name.into();
    let mut statuses: Vec<(u16, Vec<&str>)> = Vec::new();
    for kind in route.refuses.iter().chain(&[Kind::BadRequest]) {
        let status = kind.status().as_u16();
        match statuses.iter_mut().find(|(s, _)| *s == status) {
            Some((_, names)) if names.contains(&kind.name()) => {}
            Some((_, names)) => names.push(kind.name()),
            None => statuses.push((status, vec![kind.name()])),
        }
    }
    for (status, names) in statuses {
        let schema = json!({"$ref": "#/components/schemas/Problem"});
        operation["responses"][status.to_string()] = json!({
            "description": names.join(", "),
            "content": {"application/problem+json": {"schema": schema}},
        });
    }
    operation
}

/// Parameters, body and good answers of a route.
fn takes_and_gives(name: &str) -> Value {
    match name {
        "load_save" => json!({
            "summary": "Load a save",
            "parameters": [key(), word()],
            "responses": {"200": {"description": "The bytes as they were put", "headers": {"ETag": tag()}, "content": save()}},
        }),
        "put_save" => json!({
            "summary": "Keep a new save, or another body for the one that is named",
            "parameters": [key(), word(), if_none_match(), if_match(false), work()],
            "requestBody": {"required": true, "content": save()},
            "responses": {
                "201": {"description": "Kept, and on disk", "headers": {"ETag": tag()}},
                "204": {"description": "Changed, and on disk", "headers": {"ETag": tag()}},
            },
        }),
        "delete_save" => json!({
            "summary": "Remove a save",
            "parameters": [key(), word(), if_match(false)],
            "responses": {"204": {"description": "Removed"}},
        }),
        "call_python" => json!({
            "summary": "Call the Python function of a published work",
            "parameters": [slug("creator"), slug("work")],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {}}}},
            "responses": {"200": {"description": "What the function returned", "content": {"application/json": {"schema": {}}}}},
        }),
        "health" => json!({
            "summary": "Whether it serves",
            "responses": {"200": {"description": "It does", "content": {"application/json": {"schema": {
                "type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}},
            }}}}},
        }),
        _ => json!({
            "summary": "This description",
            "responses": {"200": {"description": "OpenAPI 3.1", "content": {"application/json": {"schema": {"type": "object"}}}}},
        }),
    }
}

fn key() -> Value {
    let about = "The hash of a code and its work, made in the browser";
    json!({"name": "key", "in": "path", "required": true, "description": about,
           "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}})
}

fn slug(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true,
           "schema": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": limits().work.slug_chars_max}})
}

fn word() -> Value {
    let pattern = format!("^[a-z]{{{}}}$", limits().save.word_letters);
    header(
        "Save-Word",
        "Guards a plaintext save: set when it is made, proved ever after",
        &json!({"type": "string", "pattern": pattern}),
    )
}

fn if_none_match() -> Value {
    header("If-None-Match", "Make it; it must not be there", &json!({"const": "*"}))
}

fn if_match(required: bool) -> Value {
    let mut header = header("If-Match", "The ETag of the save that is meant", &tag()["schema"]);
    header["required"] = required.into();
    header
}

fn work() -> Value {
    let schema = json!({"type": "string", "pattern": "^[a-z0-9-]+/[a-z0-9-]+$"});
    header("Tinyfiles-Work", "The work that saves, for counters that know no player", &schema)
}

fn header(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema})
}

fn tag() -> Value {
    json!({"description": "Which state of the save this is", "schema": {"type": "string", "pattern": "^\"[0-9]{1,18}\"$"}})
}

fn save() -> Value {
    let most = limits().save.body_bytes_max;
    json!({
        "application/octet-stream": {"schema": {"type": "string", "format": "binary", "maxLength": most}},
        "application/json": {"schema": {}},
    })
}
