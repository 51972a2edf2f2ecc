//! `model completions` and `model man`: the grammar, written for shells and for `man`.

use std::io::Write;

use clap::CommandFactory;

use super::CliError;
use super::args::{Args, CompletionsArgs, ManArgs};

/// The program's name, which completions are for.
const PROGRAM: &str = "model";

pub(super) fn completions(args: &CompletionsArgs, out: &mut dyn Write) -> Result<(), CliError> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), PROGRAM, &mut script);
    out.write_all(&script)?;
    Ok(())
}

/// The page of the program, or of one of its commands.
pub(super) fn man(args: &ManArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let mut program = Args::command();
    program.build();
    let page = match &args.command {
        None => program,
        Some(name) => {
            let names = program.get_subcommands().filter(|sub| !sub.is_hide_set());
            let names: Vec<&str> = names.map(clap::Command::get_name).collect();
            match program.find_subcommand(name) {
                Some(command) => command.clone(),
                None => {
                    return Err(CliError::Request(format!(
                        "no command is called `{name}`{} (known: {})",
                        crate::layout::did_you_mean(name, names.iter().copied()),
                        names.join(", ")
                    )));
                }
            }
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    out.write_all(&text)?;
    Ok(())
}
