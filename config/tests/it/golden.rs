//! Files made from the keys. `CALLBOX_BLESS=1` writes them anew; without it they must be up to date.

use std::fs;
use std::path::Path;

use callbox_config::Env;

fn golden(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if Env::from_process().get("CALLBOX_BLESS") == Some("1") {
        // In one step: other tests read the same files.
        let fresh = path.with_extension("new");
        fs::write(&fresh, made).unwrap();
        fs::rename(&fresh, &path).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{name} is not what the keys say; CALLBOX_BLESS=1 writes it anew"
    );
}

#[test]
fn schema() {
    golden("schema.json", &callbox_config::schema());
}

#[test]
fn reference() {
    golden("CONFIG.md", &callbox_config::reference());
}

#[test]
fn documented_defaults() {
    golden("callbox.toml", &callbox_config::documented_defaults());
}
