//! How long something took, as far as it ran: other programs on all cores put a thread off for
//! milliseconds at a time, and a run of a million searches meets some of that each time.

pub use imp::Clock;

#[cfg(target_os = "linux")]
mod imp {
    /// Tells the time for which this thread has run. Reading it takes some hundred nanoseconds:
    /// about a fiftieth of ten searches.
    #[derive(Debug)]
    pub struct Clock {
        begin_ns: f64,
    }

    impl Clock {
        /// Begins now.
        pub fn start() -> Clock {
            Clock { begin_ns: now_ns() }
        }

        /// Nanoseconds since then.
        pub fn elapsed_ns(&self) -> f64 {
            now_ns() - self.begin_ns
        }
    }

    /// Nanoseconds that the thread has run.
    fn now_ns() -> f64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call fills the structure that it is given, which is alive.
        let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        assert_eq!(status, 0, "Linux tells each thread its time");
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    /// Tells the time: of the wall, where nothing better is known.
    #[derive(Debug)]
    pub struct Clock {
        begin: std::time::Instant,
    }

    impl Clock {
        /// Begins now.
        pub fn start() -> Clock {
            Clock {
                begin: std::time::Instant::now(),
            }
        }

        /// Nanoseconds since then.
        pub fn elapsed_ns(&self) -> f64 {
            self.begin.elapsed().as_secs_f64() * 1e9
        }
    }
}
