//! A whole journal: the files of one daemon's life that are kept, oldest first. `FILE.1` is older than `FILE` and may
//! be of another life, whose journal had the same name; it is left out then. Called by the replay.

use super::files::numbered;
use super::format::Header;
use super::reader::{ReadError, Reader};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The files of a journal.
#[derive(Debug)]
pub struct Recording {
    files: Vec<PathBuf>,
    header: Header,
}

/// Why there is nothing to replay.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct OpenError {
    /// The file that was named.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: ReadError,
}

impl Recording {
    /// The journal up to the end of this file.
    ///
    /// # Errors
    /// The file cannot be read, or is no journal.
    pub fn open(path: &Path) -> Result<Recording, OpenError> {
        let header_of = |path: &Path| Reader::open(path).map(|reader| reader.header().clone());
        let mut header = header_of(path).map_err(|why| OpenError { path: path.to_owned(), why })?;
        let mut files = vec![path.to_owned()];
        while header.segment > 0 {
            let before = |older: &Header| {
                older.began == header.began && older.segment.checked_add(1) == Some(header.segment)
            };
            let newest = files.last().map_or(path, PathBuf::as_path);
            let found = older(newest).into_iter().find_map(|candidate| {
                let header = header_of(&candidate).ok().filter(|older| before(older))?;
                Some((candidate, header))
            });
            let Some((older, its)) = found else { break };
            files.push(older);
            header = its;
        }
        files.reverse();
        Ok(Recording { files, header })
    }

    /// What the oldest kept file begins with.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The files, oldest first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Each file, to be read from its beginning.
    pub fn readers(&self) -> impl Iterator<Item = (&Path, Result<Reader<BufReader<File>>, ReadError>)> {
        self.files.iter().map(|path| (path.as_path(), Reader::open(path)))
    }
}

/// Where the file before this one is: `FILE.1` of `FILE`, `FILE.3` of `FILE.2`.
fn older(path: &Path) -> Vec<PathBuf> {
    let mut candidates = vec![numbered(path, 1)];
    let number =
        path.extension().and_then(|number| number.to_str()).and_then(|number| number.parse::<u32>().ok());
    if let Some(next) = number.and_then(|number| number.checked_add(1)) {
        candidates.push(path.with_extension(next.to_string()));
    }
    candidates
}
