//! `grants.toml` as types: the sandbox of the frame and what each declared capability hands over.
//!
//! The sandbox tokens are the same for every work. A capability can only add browser features to the frame's `allow`
//! attribute and methods to the bridge; nothing it does reaches the sandbox tokens or the response headers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The grants in force.
pub fn grants() -> &'static Grants {
    static GRANTS: LazyLock<Grants> =
        LazyLock::new(|| crate::embedded("grants.toml", include_str!("../data/grants.toml")));
    &GRANTS
}

/// Something a work may declare in its sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Sound after the player pressed play.
    Audio,
    /// The Fullscreen API inside the frame.
    Fullscreen,
    /// Pointer movement relayed by the page, which holds the lock.
    PointerLock,
    /// A function of its own, run by the runner.
    PythonBackend,
    /// Saves under a code, through the page.
    SaveApi,
}

impl Capability {
    /// Every capability, in the order in which pages list them.
    pub const ALL: [Self; 5] =
        [Self::Audio, Self::Fullscreen, Self::PointerLock, Self::SaveApi, Self::PythonBackend];

    /// The key of the sidecar, as in `capabilities.pointer_lock`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Fullscreen => "fullscreen",
            Self::PointerLock => "pointer_lock",
            Self::PythonBackend => "python_backend",
            Self::SaveApi => "save_api",
        }
    }

    /// The capability of that sidecar key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.key() == key)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// The whole of `grants.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// What every frame has.
    pub frame: Frame,
    /// What each capability adds.
    pub capability: BTreeMap<Capability, Grant>,
    features: Features,
}

/// The attributes that every frame has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The tokens of the `sandbox` attribute and of the CSP directive of that name.
    pub sandbox: Vec<String>,
    /// The `referrerpolicy` attribute.
    pub referrerpolicy: String,
}

/// What one capability hands over.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Browser features named in the frame's `allow`.
    pub features: Vec<String>,
    /// Methods of the bridge that the page answers.
    pub methods: Vec<String>,
    /// What a list of capabilities calls it.
    pub name: String,
    /// What a player reads.
    pub words: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Features {
    denied: Vec<String>,
    site_uses: Vec<String>,
}

impl Grants {
    /// What `capability` hands over.
    pub fn grant(&self, capability: Capability) -> &Grant {
        &self.capability[&capability]
    }

    /// The `sandbox` attribute: the same for every work.
    pub fn sandbox(&self) -> String {
        self.frame.sandbox.join(" ")
    }

    /// The `allow` attribute for a work that declares `capabilities`: their features, and every other one refused.
    pub fn allow(&self, capabilities: &[Capability]) -> String {
        let granted: Vec<&str> =
            capabilities.iter().flat_map(|c| &self.grant(*c).features).map(String::as_str).collect();
        let grantable = self.capability.values().flat_map(|g| &g.features).map(String::as_str);
        let refused =
            grantable.filter(|f| !granted.contains(f)).chain(self.features.denied.iter().map(String::as_str));
        granted
            .iter()
            .map(|f| (*f).to_owned())
            .chain(refused.map(|f| format!("{f} 'none'")))
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// The value of `Permissions-Policy` on works: everything that no capability can grant is off. A grantable feature
    /// is left out, because a header that denied it would beat the frame that grants it.
    pub fn permissions_policy_work(&self) -> String {
        denied(self.features.denied.iter())
    }

    /// The same for first-party pages, less what they use themselves.
    pub fn permissions_policy_site(&self) -> String {
        denied(self.features.denied.iter().filter(|f| !self.features.site_uses.contains(f)))
    }
}

fn denied<'a>(features: impl Iterator<Item = &'a String>) -> String {
    features.map(|f| format!("{f}=()")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_is_the_published_one() {
        assert_eq!(grants().sandbox(), "allow-scripts allow-forms allow-modals allow-downloads");
        assert_eq!(grants().frame.referrerpolicy, "no-referrer");
    }

    #[test]
    fn allow_names_every_feature_once() {
        for declared in [&[][..], &[Capability::Audio], &Capability::ALL] {
            let allow = grants().allow(declared);
            let mut names: Vec<&str> = allow.split("; ").map(|d| d.split(' ').next().unwrap()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{allow}");
            assert_eq!(count, grants().features.denied.len() + 2, "{allow}");
        }
        let allow = grants().allow(&[Capability::Fullscreen]);
        assert!(allow.starts_with("fullscreen; autoplay 'none'; "), "{allow}");
    }

    #[test]
    fn every_capability_has_a_grant_and_a_key() {
        for c in Capability::ALL {
            assert!(!grants().grant(c).words.is_empty());
            assert_eq!(Capability::from_key(c.key()), Some(c));
        }
        assert_eq!(Capability::from_key("network"), None);
    }

    #[test]
    fn a_grantable_feature_is_never_denied_by_a_header() {
        for header in [grants().permissions_policy_work(), grants().permissions_policy_site()] {
            for feature in grants().capability.values().flat_map(|g| &g.features) {
                assert!(!header.contains(&format!("{feature}=")), "{feature}");
            }
            assert!(header.contains("camera=()") && header.contains("usb=()"));
        }
    }
}
