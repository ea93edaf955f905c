//! A supervisor inside another async program (S1.2, S3.5, S5.3): real children, on runtimes of both flavours, and
//! nothing left of them however it ends.

mod ends;
mod example;
mod neighbours;
mod own_process;
mod saves;
mod stage;
mod talks;
mod tools;
