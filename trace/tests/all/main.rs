//! `ccscope trace` on whole programs, in one binary: each module is of one part.

#[path = "../../../scope/tests/all/aside.rs"]
mod aside;
#[path = "../../../scope/tests/all/browser.rs"]
mod browser;
mod calls;
mod cli;
mod ends;
mod memory;
mod pages;
mod programs;
#[path = "../../../scope/tests/all/shown.rs"]
mod shown;
#[path = "../../../tests/skipped.rs"]
mod skipped;
#[path = "../../../scope/tests/all/tools.rs"]
mod tools;
#[path = "../../../scope/tests/all/valgrind.rs"]
mod valgrind;
mod whole;

use tools::missing;
