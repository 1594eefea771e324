#!/bin/sh
# check-v2.sh - run specs on a machine whose cgroup v2 has all controllers
#
# Boots Debian's own kernel in QEMU (by emulation where KVM cannot be used) with this host's
# root as a read-only 9p tree, cgroup v2 alone, and tmpfs where things are written; runs the
# limits specs there and gives back their status. Needs: make deps, and the kernel package,
# which it downloads to build/v2 once.
#
#   scripts/check-v2.sh [spec file ...]
set -eu
cd "$(dirname "$0")/.."
top=$(pwd)
out=build/v2
specs=${*:-spec/sandbox/limits_spec.lua}
mkdir -p "$out"

if ! ls "$out"/kernel/boot/vmlinuz-* >/dev/null 2>&1; then
    package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ { print $2; exit }')
    (cd "$out" && apt-get download "$package" && dpkg-deb -x "$package"_*.deb kernel && rm -f "$package"_*.deb)
fi
kernel=$(ls "$out"/kernel/boot/vmlinuz-*)
version=${kernel##*vmlinuz-}

root=$out/initrd
rm -rf "$root"
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/host"
cp "$(command -v busybox)" "$root/bin/busybox"
modules=$root/lib/modules/$version
for part in drivers/virtio net/9p fs/9p fs/netfs fs/fscache fs/overlayfs drivers/char/hw_random; do
    mkdir -p "$modules/kernel/$part"
    cp -r "$out/kernel/lib/modules/$version/kernel/$part/." "$modules/kernel/$part/"
done
cp "$out/kernel/lib/modules/$version/modules.order" "$out/kernel/lib/modules/$version/modules.builtin" "$modules/"
depmod -b "$root" "$version"

cat > "$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for m in virtio_pci 9p 9pnet_virtio overlay virtio_rng; do modprobe \$m 2>/dev/null; done
mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,ro,msize=262144 host /host || exec sh
cd /host
for d in tmp run var/lib/wovyr var/tmp; do [ -d \$d ] && mount -t tmpfs -o mode=1777 tmpfs \$d; done
mount -t proc proc proc
mount -t sysfs sys sys
mount -t devtmpfs dev dev
mkdir -p dev/pts dev/shm
mount -t devpts -o ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t cgroup2 cgroup sys/fs/cgroup
mkdir sys/fs/cgroup/init
echo \$\$ > sys/fs/cgroup/init/cgroup.procs
echo "+cpu +memory +pids" > sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
chmod 755 run
cat > run/check <<'RUN'
export HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 WOVYR_SPEC_SKIPS=/tmp/skips
cd "$top"
uname -r; cat /sys/fs/cgroup/cgroup.controllers
eval "\$(cat build/v2/env)"
lua5.4 /usr/bin/busted --helper=spec/helper.lua -o plainTerminal $specs
echo "status=\$?"
busybox poweroff -f
RUN
umount /dev /sys /proc
exec switch_root /host /bin/sh /run/check # a chroot may not make user namespaces
INIT
chmod 755 "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) > "$out/initrd.cpio"

[ -n "${WOVYR_BUILT-}" ] || make -s all
make -s env > "$out/env"
tsc=$(dmesg 2>/dev/null | sed -n 's/.*tsc: Detected \([0-9]*\)\.\([0-9]*\) MHz.*/\1\2/p' | head -1)
timeout 1500 qemu-system-x86_64 -M q35 -accel tcg -cpu max -m 3072 -smp 2 \
    -kernel "$kernel" -initrd "$out/initrd.cpio" -no-reboot -nographic -nodefaults -serial stdio \
    -append "console=ttyS0 quiet panic=-1 tsc_early_khz=${tsc:-0} cryptomgr.notests random.trust_cpu=on cgroup_no_v1=all systemd.unified_cgroup_hierarchy=1" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -device virtio-rng-pci < /dev/null | tee "$out/transcript.txt"
grep -q '^status=0' "$out/transcript.txt"
