//! The description at `/api/openapi.json` beside the routes that are served.

use std::collections::BTreeSet;

use api::route::ROUTES;

use crate::server::Server;

#[test]
fn the_description_has_the_routes_that_are_served_and_no_other() {
    let server = Server::new();
    let mut client = server.client();
    let document = client.request("GET", "/api/openapi.json", &[], b"").json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            described.insert((method.to_uppercase(), path.clone()));
            let good =
                operation["responses"].as_object().unwrap().keys().filter(|s| s.starts_with('2')).count();
            assert!(good > 0 && !operation["summary"].as_str().unwrap().is_empty(), "{method} {path}");
        }
    }
    let routes = ROUTES.iter().map(|r| (r.method.to_string(), r.path.to_owned())).collect();
    assert_eq!(described, routes);
    for (method, path) in described {
        let path = path.replace("{key}", &"0".repeat(64)).replace("{creator}", "a").replace("{work}", "b");
        let status = client.request(&method, &path, &[], b"").status;
        assert_ne!(status, 405, "{method} {path}");
        let other = client.request("PATCH", &path, &[], b"");
        let allowed = other.header("allow").unwrap_or_else(|| panic!("{other:?}"));
        assert!(allowed.split(", ").any(|m| m == method), "{path}: {allowed}");
    }
}
