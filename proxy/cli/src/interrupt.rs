//! Ctrl-C as an ordinary end for commands that run until told to stop. A second one ends the process at once, should the
//! first be stuck behind a reader that does not read.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

/// Tells whether SIGINT came.
pub(crate) struct Interrupt(Receiver<()>);

impl Interrupt {
    /// Takes SIGINT over from here on.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, receiver) = sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        // Registered before the thread runs: a signal that comes in between must not kill.
        let mut signals = {
            let _entered = runtime.enter();
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?
        };
        thread::Builder::new()
            .name("callbox-sigint".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    signals.recv().await;
                    // Full or closed: the command ends already.
                    sender.try_send(()).unwrap_or(());
                    signals.recv().await;
                });
                #[allow(
                    clippy::exit,
                    reason = "the second Ctrl-C: the command does not end by itself"
                )]
                std::process::exit(130)
            })?;
        Ok(Self(receiver))
    }

    /// Whether it came already.
    pub(crate) fn came(&self) -> bool {
        self.0.try_recv() != Err(TryRecvError::Empty)
    }

    /// Waits for it; `false` when the time is up first.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}
