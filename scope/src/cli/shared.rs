//! What `ccscope-trace` has in common with the commands here. No promise is made to others.

pub use super::launch::{ALONE, alone, check_output, exit_code, preload};
pub use super::program::{Program, find as find_program};
pub use super::runtime::install;
pub use super::secrets::hide;
pub use super::show::not_over_itself;
pub use super::signals::{hand_on_to, obey, outlive};
pub use super::socket::lines_of;
pub use super::{CliError, answer_or_refuse, code_of, fail, usage};
pub use crate::store::{create, is_stream};
pub use crate::symbols::demangle;
pub use crate::views::text::{escaped, short_function};
