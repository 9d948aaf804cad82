//! Ranges of addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses: `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

/// A text that is not a range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is neither an address nor a range such as `10.0.0.0/8`")]
pub struct InvalidSubnet;

impl Subnet {
    /// The range of the addresses that share their first `prefix` bits with `address`; `None` if
    /// that has fewer bits.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        (prefix <= width(address)).then_some(Self { address, prefix })
    }

    /// Whether `address` is in it. Addresses of the other family never are.
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = u32::from(width(self.address) - self.prefix);
        let head = |address| bits(address).checked_shr(shift).unwrap_or(0);
        self.address.is_ipv4() == address.is_ipv4() && head(self.address) == head(address)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// An address alone is the range that has only it.
impl FromStr for Subnet {
    type Err = InvalidSubnet;

    fn from_str(text: &str) -> Result<Self, InvalidSubnet> {
        let (address, prefix) = text
            .split_once('/')
            .map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| InvalidSubnet)?;
        let prefix = prefix
            .map_or(Ok(width(address)), str::parse)
            .map_err(|_| InvalidSubnet)?;
        Self::new(address, prefix).ok_or(InvalidSubnet)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
