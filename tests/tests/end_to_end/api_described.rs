//! schemathesis, a program of other people, calls the API as its description says, and not as it says.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tests::{Installation, Ran, repository};

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,unsupported_method";

#[test]
fn the_api_keeps_to_its_description() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    // It asks as fast as it can, from one address: what nginx would refuse is not what is looked at.
    let conf = here.render_nginx()?.join("nginx.conf");
    let text = std::fs::read_to_string(&conf)?;
    let open =
        text.lines().filter(|l| !l.trim_start().starts_with("limit_req ")).collect::<Vec<_>>().join("\n");
    ensure!(open.len() < text.len(), "no limit to take out");
    std::fs::write(&conf, open)?;
    here.start_nginx()?;
    let _api = here.api()?;
    let program = repository().join("target/schemathesis/bin/schemathesis");
    let ran = Command::new(&program)
        .args(["run", &format!("http://localhost:{}/api/openapi.json", here.site_port)])
        // That wrong data is refused is for hostile.rs: nginx leaves out an empty header, which is right, and here a fault.
        .args(["--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", "15", "--seed", "7"])
        // Previews are pages: nginx puts the site's own in the place of a problem.
        .args(["--exclude-path-regex", "^/preview/", "--no-color"])
        .current_dir(here.folder())
        .env("NO_PROXY", "*")
        .output();
    let ran = Ran::of(&ran.with_context(|| format!("no {}; `./dev test` installs it", program.display()))?);
    ensure!(ran.code == 0, "{}\n{}", ran.stdout, ran.stderr);
    Ok(())
}
