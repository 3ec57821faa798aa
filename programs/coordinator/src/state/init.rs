//! Writes the first bytes of a zero-copy account that `crate::pda` has just created.

use anchor_lang::{prelude::*, Discriminator, ZeroCopy};

use crate::errors::{refuse, CoordinatorError};

/// Writes the discriminator and lets `fill` set the fields in place, so that no large struct
/// passes through the stack.
pub fn initialise<T: ZeroCopy + Discriminator>(
    account: &AccountInfo,
    fill: impl FnOnce(&mut T) -> Result<()>,
) -> Result<()> {
    let mut data = account.try_borrow_mut_data()?;
    let discriminator = T::DISCRIMINATOR;
    let Some((head, body)) = data.split_at_mut_checked(discriminator.len()) else {
        return Err(refuse(CoordinatorError::WrongAccountSize));
    };
    ensure!(
        head.iter().all(|&byte| byte == 0),
        CoordinatorError::AccountAlreadyExists
    );
    let value = bytemuck::try_from_bytes_mut::<T>(body)
        .map_err(|_| refuse(CoordinatorError::WrongAccountSize))?;
    fill(value)?;
    head.copy_from_slice(discriminator);
    Ok(())
}
