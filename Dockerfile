# The daemon in a container of its own: one static program, nothing else.
#
#   docker build -t callsheet .
#   docker run -p 127.0.0.1:7400:7400 -v callsheet:/var/lib/callsheet -v ./callsheet.toml:/etc/callsheet/callsheet.toml:ro callsheet
#
# Whoever reaches the port may change preferences, so publish it on loopback, as above. Requests are answered by loopback names and by the
# container's own address; other names have to be in `server.allowed_hosts`. The local network cannot be heard from within a container's
# network: with `--network host`, set CALLSHEET_DISCOVERY__MDNS__ENABLED=true and CALLSHEET_SERVER__LISTEN=127.0.0.1:7400.

FROM rust:1-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /build
COPY Cargo.toml Cargo.lock build.rs about.toml about.hbs ./
COPY config ./config
COPY benches ./benches
COPY examples ./examples
COPY crates ./crates
COPY src ./src
# The commit that `callsheet --version` names: `docker build --build-arg CALLSHEET_COMMIT=$(git rev-parse --short=12 HEAD)`.
ARG CALLSHEET_COMMIT=
# The target is named so that only the program itself is linked statically, not what runs while it is built.
RUN target="$(rustc -vV | sed -n 's/^host: //p')" \
    && RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile dist --bin callsheet --target "$target" \
    && install -D "target/$target/dist/callsheet" /image/usr/bin/callsheet \
    && cargo install --quiet cargo-about --version 0.9.3 --locked --features cli \
    && mkdir -p /image/usr/share/doc/callsheet \
    && cargo about generate --locked --fail --output-file /image/usr/share/doc/callsheet/THIRD-PARTY-LICENSES.txt about.hbs \
    && install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
    && install -d -m 700 -o 65534 -g 65534 /image/var/lib/callsheet

FROM scratch
COPY --from=build /image/ /
# A volume that is made here has the folder's owner: nobody.
COPY --from=build --chown=65534:65534 /image/var/lib/callsheet /var/lib/callsheet
ENV CALLSHEET_SERVER__LISTEN=0.0.0.0:7400 \
    CALLSHEET_STATE__PATH=/var/lib/callsheet/state.db \
    CALLSHEET_DISCOVERY__MDNS__ENABLED=false
USER 65534:65534
WORKDIR /var/lib/callsheet
VOLUME /var/lib/callsheet
EXPOSE 7400
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s CMD ["/usr/bin/callsheet", "scenarios", "--json"]
ENTRYPOINT ["/usr/bin/callsheet"]
CMD ["serve"]
