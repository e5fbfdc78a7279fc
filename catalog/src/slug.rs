//! Slugs and file names: the words of a path.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest slug.
const SLUG_CHARS_MAX: usize = 48;
/// The longest file name.
const FILE_NAME_CHARS_MAX: usize = 80;

/// First segments of paths that the site uses itself, and names people would mistake for the platform's own.
const RESERVED: &[&str] = &[
    "about",
    "admin",
    "api",
    "assets",
    "changelog",
    "creator",
    "creators",
    "data",
    "error",
    "gone",
    "help",
    "index",
    "official",
    "preview",
    "preview-files",
    "privacy",
    "problems",
    "python",
    "python-status",
    "review",
    "robots",
    "rss",
    "rules",
    "saves",
    "schema",
    "security",
    "sitemap",
    "src",
    "submission-criteria",
    "submit",
    "support",
    "system",
    "terms",
    "tinyfiles",
    "works",
];

/// The name of a creator or of a work in a path: lower-case letters, digits and single hyphens between them, at most
/// 48 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Slug(String);

/// Why a text is not a slug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlugError {
    /// Characters, hyphens or length are wrong.
    #[error("{0:?} is not a slug: use a-z, 0-9 and single hyphens between them, at most 48 characters")]
    Malformed(String),
    /// The site needs the name.
    #[error("{0:?} is reserved for the site; choose another name")]
    Reserved(String),
}

impl Slug {
    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the slug of a creator, which is the first segment of a path and so must not be one of the site's.
    pub fn parse_creator(text: &str) -> Result<Self, SlugError> {
        let slug: Self = text.parse()?;
        if RESERVED.contains(&text) { Err(SlugError::Reserved(text.to_owned())) } else { Ok(slug) }
    }

    /// A title made of the slug: `text-adventure` becomes `Text adventure`.
    pub fn to_title(&self) -> String {
        let words = self.0.replace('-', " ");
        let mut chars = words.chars();
        chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
    }
}

impl FromStr for Slug {
    type Err = SlugError;

    fn from_str(text: &str) -> Result<Self, SlugError> {
        let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if text.len() <= SLUG_CHARS_MAX && text.split('-').all(word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(SlugError::Malformed(text.to_owned()))
        }
    }
}

/// The name of a file beside the payload: letters, digits, `.`, `-` and `_`, starting with a letter or digit, at most
/// 80 characters, and none of the names that a work's directory uses itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FileName(String);

/// A text that is not the name of a file of a work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be a file name: use letters, digits, `.`, `-` and `_`, at most 80 characters, starting with a letter \
     or digit; index.html, work.json and checksums.txt are taken"
)]
pub struct FileNameError(String);

/// The payload's name in the directory of its work.
pub const PAYLOAD: &str = "index.html";
/// The sidecar's name in the directory of its work.
pub const SIDECAR: &str = "work.json";
/// The name of the list that every directory has.
pub const CHECKSUMS: &str = "checksums.txt";

impl FileName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FileName {
    type Err = FileNameError;

    fn from_str(text: &str) -> Result<Self, FileNameError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let taken = [PAYLOAD, SIDECAR, CHECKSUMS].iter().any(|t| t.eq_ignore_ascii_case(text));
        let starts = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if starts && text.len() <= FILE_NAME_CHARS_MAX && text.bytes().all(plain) && !taken {
            Ok(Self(text.to_owned()))
        } else {
            Err(FileNameError(text.to_owned()))
        }
    }
}

/// File names whose ending says what the file is, because the ending decides how a browser is told to read it.
macro_rules! file_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $words:literal, $endings:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let FileName(name) = text.parse::<FileName>().map_err(|e| e.to_string())?;
                let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
                if $endings.contains(&ending) {
                    Ok(Self(name))
                } else {
                    Err(format!("{text:?} cannot be the name of {}: end it in {}", $what, $words))
                }
            }
        }
        text!($name, String);
    };
}

/// Text conversions that all newtypes have.
macro_rules! text {
    ($name:ident, $error:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl TryFrom<String> for $name {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}
text!(Slug, SlugError);
text!(FileName, FileNameError);

file_name! {
    /// The name of a picture. It is served by the first-party origin, so it must never look like a page or a script.
    PictureName, "a picture", ".png, .jpg, .jpeg, .webp or .gif", ["png", "jpg", "jpeg", "webp", "gif"]
}
file_name! {
    /// The name of a Python file.
    PythonName, "a Python file", ".py", ["py"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        for good in ["a", "7", "moth", "text-adventure", "a-1-b", &"x".repeat(48)] {
            assert_eq!(good.parse::<Slug>().unwrap().as_str(), good);
        }
        for bad in ["", "-", "a-", "-a", "a--b", "A", "a_b", "a.b", "ä", "a/b", "a b", &"x".repeat(49)] {
            assert_eq!(bad.parse::<Slug>(), Err(SlugError::Malformed(bad.to_owned())));
        }
    }

    #[test]
    fn a_creator_cannot_take_a_path_of_the_site() {
        for taken in RESERVED {
            assert_eq!(Slug::parse_creator(taken), Err(SlugError::Reserved((*taken).to_owned())));
            assert!(taken.parse::<Slug>().is_ok(), "a work may be called {taken}");
        }
        assert!(Slug::parse_creator("moth").is_ok());
    }

    #[test]
    fn file_names() {
        for good in ["cover.png", "text-adventure.py", "A_1.x"] {
            assert!(good.parse::<FileName>().is_ok(), "{good}");
        }
        for bad in [
            "",
            ".x",
            "a/b",
            "..",
            "index.html",
            "Work.JSON",
            "checksums.txt",
            "a b",
            "ü.png",
            &"x".repeat(81),
        ] {
            assert!(bad.parse::<FileName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_picture_is_called_like_one_and_so_is_a_python_file() {
        for good in ["cover.png", "a.b.jpg", "x.jpeg", "y.webp", "z.gif"] {
            assert!(good.parse::<PictureName>().is_ok(), "{good}");
        }
        for bad in ["png", "x.svg", "x.html", "x.js", "x.png.gz", "index.html.gz", "x.PNG", "../x.png"] {
            assert!(bad.parse::<PictureName>().is_err(), "{bad}");
        }
        assert!("text-adventure.py".parse::<PythonName>().is_ok());
        assert!("x.html".parse::<PythonName>().is_err());
    }

    #[test]
    fn titles() {
        assert_eq!("text-adventure".parse::<Slug>().unwrap().to_title(), "Text adventure");
    }
}
