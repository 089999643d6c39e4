//! Runs the binary and writes down all that a caller sees of it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary, with an environment that holds nothing but what a test puts there.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callbox"));
    command.env_clear().args(arguments).stdin(Stdio::null());
    command
}

/// With this data directory.
pub(crate) fn on(data: &Path, arguments: &[&str]) -> Command {
    let mut command = command(arguments);
    command.arg("--data").arg(data);
    command
}

/// Exit code, stdout and stderr of a run on a data directory, as one text. Its path becomes `[DATA]`.
pub(crate) fn told(data: &Path, arguments: &[&str]) -> String {
    let output = on(data, arguments).output().unwrap();
    let text = written(&output);
    text.replace(&*data.to_string_lossy(), "[DATA]")
}

/// Exit code, stdout and stderr, as one text.
pub(crate) fn written(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let code = output
        .status
        .code()
        .map_or_else(|| output.status.to_string(), |code| code.to_string());
    format!("exit code: {code}\n----- stdout -----\n{out}----- stderr -----\n{err}")
}

/// stdout of a run that must succeed and say nothing else.
pub(crate) fn stdout(data: &Path, arguments: &[&str]) -> String {
    let output = on(data, arguments).output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        written(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// stdout as JSON Lines.
pub(crate) fn json(data: &Path, arguments: &[&str]) -> Vec<serde_json::Value> {
    stdout(data, arguments)
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}
