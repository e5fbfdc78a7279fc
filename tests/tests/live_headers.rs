//! The headers that a client sees, for every class of answer, beside what the policy says.

use policy::{Config, headers};
use tests::{Installation, http};

#[test]
fn a_page_and_a_work_carry_exactly_the_policy() -> anyhow::Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    here.serve()?;
    let config = Config::open(&here.config())?;
    for (port, host, path, set) in [
        (here.site_port, "localhost", "/", headers::site(&config)),
        (here.content_port, "127.0.0.1", "/moth/hitch/", headers::work(&config, "/moth/hitch/")),
    ] {
        let answer = http::get(port, host, path)?;
        assert_eq!(answer.status, 200);
        for header in set {
            assert_eq!(answer.header(&header.name.to_lowercase()), Some(header.value.as_str()), "{path}");
        }
    }
    Ok(())
}
