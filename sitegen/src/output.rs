//! The trees under construction: paths, each with an object or a finished directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use catalog::directory::StoreError;
use catalog::live::Writer;
use catalog::{Data, Digest, Directory};
use rayon::prelude::*;

use crate::diagnostic::Diagnostic;

/// A directory that is not named yet.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    files: BTreeMap<String, Digest>,
    done: BTreeMap<String, (Digest, Vec<String>)>,
    folders: BTreeMap<String, Folder>,
}

impl Folder {
    /// Puts an object at a path such as `data/works.js`. Two files at one path are a problem, named by the path.
    pub(crate) fn file(&mut self, path: &str, digest: Digest) -> Result<(), Diagnostic> {
        let (folder, name) = self.parent(path);
        if folder.taken(name) {
            return Err(twice(path));
        }
        folder.files.insert(name.to_owned(), digest);
        Ok(())
    }

    /// Puts a finished directory with these files at a path such as `moth/drift`.
    pub(crate) fn dir(&mut self, path: &str, digest: Digest, files: Vec<String>) -> Result<(), Diagnostic> {
        let (folder, name) = self.parent(path);
        if folder.taken(name) {
            return Err(twice(path));
        }
        folder.done.insert(name.to_owned(), (digest, files));
        Ok(())
    }

    fn parent<'a, 'p>(&'a mut self, path: &'p str) -> (&'a mut Self, &'p str) {
        let mut folder = self;
        let mut rest = path;
        while let Some((first, after)) = rest.split_once('/') {
            folder = folder.folders.entry(first.to_owned()).or_default();
            rest = after;
        }
        (folder, rest)
    }

    fn taken(&self, name: &str) -> bool {
        self.files.contains_key(name) || self.done.contains_key(name) || self.folders.contains_key(name)
    }

    /// Whether a request for that path (without a leading slash) is answered.
    pub(crate) fn serves(&self, path: &str) -> bool {
        match path.split_once('/') {
            Some((first, "")) => self.done.contains_key(first) || self.folders.contains_key(first),
            Some((first, rest)) => match self.folders.get(first) {
                Some(folder) => folder.serves(rest),
                None => self.done.get(first).is_some_and(|(_, files)| files.iter().any(|f| f == rest)),
            },
            None => path.is_empty() || self.files.contains_key(path),
        }
    }

    /// The files directly in a sub-folder.
    pub(crate) fn files_in(&self, folder: &str) -> impl Iterator<Item = (&String, &Digest)> {
        self.folders.get(folder).into_iter().flat_map(|f| &f.files)
    }

    /// Writes the folder and everything below it, and returns its name. `previous` is the directory that was at this
    /// place in the tree that is served.
    pub(crate) fn write(
        &self,
        data: &Data,
        writer: &Writer<'_>,
        previous: Option<Digest>,
    ) -> Result<Digest, StoreError> {
        let previous = previous.and_then(|digest| Some((digest, data.directories.read(&digest).ok()?)));
        let before = |name: &str| previous.as_ref().and_then(|(_, directory)| directory.sub(name));
        let subs = self
            .folders
            .par_iter()
            .map(|(name, folder)| Ok((name, folder.write(data, writer, before(name))?)));
        let mut directory = Directory::default();
        for (name, digest) in subs.collect::<Result<Vec<_>, StoreError>>()? {
            directory.dir(name, digest);
        }
        for (name, (digest, _)) in &self.done {
            directory.dir(name, *digest);
        }
        for (name, digest) in &self.files {
            directory.file(name, *digest);
        }
        writer.directory(&directory, previous.as_ref().map(|(digest, directory)| (digest, directory)))
    }
}

fn twice(path: &str) -> Diagnostic {
    Diagnostic::file(
        PathBuf::from(format!("/{path}")),
        "two sources make a file at this path",
        "rename one of them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_once_and_served_after() {
        let (mut root, digest) = (Folder::default(), Digest::of(b"x"));
        root.file("a/b/c.html", digest).unwrap();
        root.file("index.html", digest).unwrap();
        root.dir("a/d", digest, vec!["e.png".to_owned()]).unwrap();
        for taken in ["a/b/c.html", "index.html", "a/d", "a"] {
            assert!(root.file(taken, digest).is_err(), "{taken}");
            assert!(root.dir(taken, digest, vec![]).is_err(), "{taken}");
        }
        for (path, served) in [
            ("", true),
            ("a/", true),
            ("a/b/", true),
            ("a/b/c.html", true),
            ("a/d/", true),
            ("index.html", true),
            ("a/d/e.png", true),
            ("a", false),
            ("a/x", false),
            ("a/d/x", false),
            ("x/", false),
        ] {
            assert_eq!(root.serves(path), served, "{path}");
        }
    }
}
