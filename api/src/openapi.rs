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
            "description": "Saves that the server cannot read, calls of the Python functions of works, submissions and their review. Same origin only.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {"member": {
                "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                "description": "ES256, signed by the member's own key, which `kid` names by its RFC 7638 thumbprint; \
                                `aud` is the site, `exp` at most an hour after `iat`, `s` in the lower half",
            }},
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
        "openapi" => json!({
            "summary": "This description",
            "responses": {"200": {"description": "OpenAPI 3.1", "content": {"application/json": {"schema": {"type": "object"}}}}},
        }),
        _ => of_members(name),
    }
}

/// The same for the addresses of members and moderators.
fn of_members(name: &str) -> Value {
    match name {
        "claim" => json!({
            "summary": "Claim a name for the key that signed the token",
            "requestBody": json_body(&json!({"type": "object", "required": ["pseudonym", "key"], "properties": {
                "pseudonym": slug("pseudonym")["schema"], "key": {"type": "object", "required": ["kty", "crv", "x", "y"]},
            }})),
            "security": [{"member": []}],
            "responses": {"201": gives("The member")},
        }),
        "submit" => json!({
            "summary": "Submit a work",
            "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {
                "type": "object", "required": ["payload"], "properties": {
                    "payload": file("A page, or a zip"), "sidecar": file("work.json"), "cover": file("A picture"),
                    "python": file("The Python function"),
                },
            }}}},
            "security": [{"member": []}],
            "responses": {"202": gives("`jobId`, by which it is followed")},
        }),
        "decide" => json!({
            "summary": "Approve or decline a version",
            "parameters": [segment("id")],
            "requestBody": json_body(&json!({"type": "object", "required": ["decision"], "properties": {
                "decision": {"enum": ["approve", "decline"]}, "reason": {"type": "string"},
            }})),
            "security": [{"member": []}],
            "responses": {"204": {"description": "Decided"}},
        }),
        "take_down" => json!({
            "summary": "Take a published work down",
            "requestBody": json_body(&json!({"type": "object", "required": ["creator", "work", "reason"]})),
            "security": [{"member": []}],
            "responses": {"204": {"description": "It is gone with the next publish"}},
        }),
        "own_rating" => json!({
            "summary": "How the member rated a work",
            "parameters": [slug("creator"), slug("work")],
            "security": [{"member": []}],
            "responses": {"200": gives("`stars`, or null")},
        }),
        "rate" => json!({
            "summary": "Rate a published work, in the place of an earlier rating",
            "parameters": [slug("creator"), slug("work")],
            "requestBody": json_body(&json!({"type": "object", "required": ["stars"], "properties": {
                "stars": {"type": "integer", "minimum": 1, "maximum": 5},
            }})),
            "security": [{"member": []}],
            "responses": {"204": {"description": "Counted with the next publish"}},
        }),
        "who_am_i" => asked("Whose key this is", &[], 200),
        "own_submissions" => asked("One's submissions, newest first", &[], 200),
        "job" => asked("How far a submission has come, and what the checks say", &["id"], 200),
        "take_back" => asked("Take a submission back before it is decided", &["id"], 204),
        "retire" => asked("Take a published work of one's own down", &["work"], 204),
        "review_queue" => asked("What waits for a moderator", &[], 200),
        "review_saves" => asked("What was saved for each published work, and refused", &[], 200),
        "review_version" => asked("One version with its sources and findings", &["id"], 200),
        "open_preview" => asked("Open a preview of a version", &["id"], 201),
        "preview_state" => asked("Whether a preview is rendered", &["token"], 200),
        "audit" => asked("The last decisions, and whether their chain holds", &[], 200),
        "preview" => preview(&["token"]),
        "preview_file" => preview(&["token", "file"]),
        _ => json!({ "responses": {} }),
    }
}

/// What a member asks without a body.
fn asked(summary: &str, segments: &[&str], status: u16) -> Value {
    let answer = if status == 204 { json!({"description": "Done"}) } else { gives("As JSON") };
    let parameters: Vec<Value> = segments.iter().map(|name| segment(name)).collect();
    json!({
        "summary": summary,
        "parameters": parameters,
        "security": [{"member": []}],
        "responses": {status.to_string(): answer},
    })
}

/// What only nginx asks.
fn preview(segments: &[&str]) -> Value {
    let parameters: Vec<Value> = segments.iter().map(|name| segment(name)).collect();
    json!({
        "summary": "nginx asks whether a preview may be seen; not to be reached from outside",
        "parameters": parameters,
        "responses": {"200": {"description": "Which of its own files it sends"}},
    })
}

fn segment(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
}

fn gives(description: &str) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": {"type": "object"}}}})
}

fn json_body(schema: &Value) -> Value {
    json!({"required": true, "content": {"application/json": {"schema": schema}}})
}

fn file(description: &str) -> Value {
    json!({"type": "string", "format": "binary", "description": description})
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
