//! Which addresses are those of the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet (IANA's registries of special addresses, RFC
/// 6890). An address of IPv6 that holds one of IPv4 is what the inner one is.
pub fn is_public_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation();
    // "This network", carrier-grade NAT, protocol assignments, 6to4 relays, benchmarks, multicast
    // and reserved.
    let reserved = matches!(
        (a, b, c),
        (0 | 224.., ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _)
    );
    !special && !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let [first, second, third, ..] = parts;
    let inside =
        |high: u16, low: u16| is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (first, second) {
        // Translated (RFC 6052) and tunnelled (RFC 3056) addresses hold one of IPv4.
        (0x64, 0xff9b) => parts[2..6] == [0; 4] && inside(parts[6], parts[7]),
        (0x2002, _) => inside(second, third),
        // Teredo and other protocol assignments, and documentation.
        (0x2001, 0..0x200 | 0xdb8) | (0x3fff, 0..0x1000) => false,
        // All public addresses begin so (RFC 4291 section 2.4).
        _ => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "192.0.1.1",
            "2606:4700::1",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
            "2002:808:808::",
        ] {
            assert!(is_public_address(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::10.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:a00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public_address(text.parse().unwrap()), "{text}");
        }
    }
}
