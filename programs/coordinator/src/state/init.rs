//! Writes the first bytes of a zero-copy account that `crate::pda` has just created, and reads one
//! that an instruction may have created itself.

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

/// The value in an account that may not exist yet when the instruction starts: owner,
/// discriminator and size are checked, as `AccountLoader` does for the others.
pub fn open_mut<'a, T: ZeroCopy + Discriminator>(
    account: &'a AccountInfo,
) -> Result<std::cell::RefMut<'a, T>> {
    ensure!(*account.owner == crate::ID, CoordinatorError::WrongAddress);
    let data = account.try_borrow_mut_data()?;
    let is_kind = data.starts_with(T::DISCRIMINATOR);
    ensure!(is_kind, CoordinatorError::WrongAddress);
    let parsed = std::cell::RefMut::filter_map(data, |bytes| {
        let body = bytes.get_mut(T::DISCRIMINATOR.len()..)?;
        bytemuck::try_from_bytes_mut::<T>(body).ok()
    });
    parsed.map_err(|_| refuse(CoordinatorError::WrongAccountSize))
}
