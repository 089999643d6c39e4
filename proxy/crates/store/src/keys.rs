//! The deployment's own secret: thirty-two random bytes that key the digests of principals, sessions and placeholders.
//!
//! It never leaves the data directory and is never printed. Losing it changes every digest from then on, nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rand::TryRng;
use rand::rngs::SysRng;

use crate::error::StoreError;
use crate::files;

/// Name of the key file in the data directory.
const NAME: &str = "callbox.key";

/// The key of a deployment.
#[derive(Clone)]
pub struct Keys([u8; 32]);

impl Keys {
    /// Reads `callbox.key` of the data directory; makes directory and file when they are missing.
    ///
    /// # Errors
    /// When the file cannot be read or made, or does not hold thirty-two bytes.
    pub fn load_or_create(dir: &Path) -> Result<Self, StoreError> {
        files::directory(dir)?;
        let path = dir.join(NAME);
        match File::open(&path) {
            Ok(file) => Self::read(file, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(dir, &path).map_err(|source| StoreError::file("create", &path, source))?;
                // Read back: another process may have been first, and then its key is the one.
                let file =
                    File::open(&path).map_err(|source| StoreError::file("open", &path, source))?;
                Self::read(file, &path)
            }
            Err(source) => Err(StoreError::file("open", &path, source)),
        }
    }

    fn read(mut file: File, path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::file("read", path, source);
        files::owner_only(path)?;
        let found = file.metadata().map_err(failed)?.len();
        if found != 32 {
            return Err(StoreError::BadKey {
                path: path.to_path_buf(),
                found,
            });
        }
        let mut key = [0; 32];
        file.read_exact(&mut key).map_err(failed)?;
        Ok(Self(key))
    }

    /// The key itself, for the digests made with it.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(…)")
    }
}

/// Written aside and linked into place, so that nobody ever reads half a key and the first of two processes wins.
fn create(dir: &Path, path: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    SysRng.try_fill_bytes(&mut key).map_err(io::Error::other)?;
    let mut suffix = [0; 8];
    SysRng
        .try_fill_bytes(&mut suffix)
        .map_err(io::Error::other)?;
    let aside = dir.join(format!("{NAME}.{:016x}", u64::from_be_bytes(suffix)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(&key)?;
    file.sync_all()?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
