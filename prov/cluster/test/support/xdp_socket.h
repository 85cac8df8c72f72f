// An AF_XDP socket by system calls alone: its frames, its four rings, and a program that gives it what comes for one port.
// Frames and rings are shared with forked children, as a service would share them with the process that it hands the socket to.
#pragma once

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::test {

class XdpSocket {
 public:
  static constexpr std::uint32_t kSlots = 16;
  static constexpr std::uint32_t kSlotSize = 2048;

  explicit XdpSocket(os::Descriptor socket) : socket_(std::move(socket)) {
    void* const shared = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED) frames_ = static_cast<std::byte*>(shared);
  }
  XdpSocket(const XdpSocket&) = delete;
  XdpSocket& operator=(const XdpSocket&) = delete;
  ~XdpSocket() {
    if (frames_ != nullptr) ::munmap(frames_, kBytes);
    for (Ring* ring : {&fill_, &completion_, &received_, &sent_}) {
      if (ring->memory != nullptr) ::munmap(ring->memory, ring->size);
    }
  }

  static os::Descriptor make() { return os::Descriptor(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)); }
  int number() const { return socket_.number(); }

  /// These give what the system call gives.
  int register_frames() {
    xdp_umem_reg memory{};
    memory.addr = reinterpret_cast<std::uintptr_t>(frames_);
    memory.len = kBytes;
    memory.chunk_size = kSlotSize;
    return ::setsockopt(number(), SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory);
  }
  int bind(unsigned interface, unsigned queue = 0) {
    sockaddr_xdp place{};
    place.sxdp_family = AF_XDP;
    place.sxdp_flags = XDP_COPY;
    place.sxdp_ifindex = interface;
    place.sxdp_queue_id = queue;
    return ::bind(number(), reinterpret_cast<const sockaddr*>(&place), sizeof place);
  }

  bool make_rings() {
    const int slots = kSlots;
    for (const int option : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING}) {
      if (::setsockopt(number(), SOL_XDP, option, &slots, sizeof slots) != 0) return false;
    }
    xdp_mmap_offsets offsets{};
    socklen_t size = sizeof offsets;
    if (::getsockopt(number(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) return false;
    return fill_.map(number(), offsets.fr, XDP_UMEM_PGOFF_FILL_RING, sizeof(std::uint64_t)) &&
           completion_.map(number(), offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(std::uint64_t)) &&
           received_.map(number(), offsets.rx, XDP_PGOFF_RX_RING, sizeof(xdp_desc)) &&
           sent_.map(number(), offsets.tx, XDP_PGOFF_TX_RING, sizeof(xdp_desc));
  }

  /// Sends one frame, whatever is in it; -1 with an errno.
  int send(ConstBytes frame) {
    std::memcpy(frames_, frame.data(), frame.size());
    *sent_.next<xdp_desc>() = {0, static_cast<std::uint32_t>(frame.size()), 0};
    sent_.publish();
    return static_cast<int>(::sendto(number(), nullptr, 0, MSG_DONTWAIT, nullptr, 0));
  }
  /// The kernel may receive into all slots but the first, which is for sending.
  void offer_slots() {
    for (std::uint64_t i = 1; i < kSlots; ++i) {
      *fill_.next<std::uint64_t>() = i * kSlotSize;
      fill_.publish();
    }
  }
  /// The oldest frame that was received; empty: none.
  ConstBytes receive() {
    if (received_.taken() == received_.published()) return {};
    const xdp_desc& frame = *received_.oldest<xdp_desc>();
    received_.take();
    return {frames_ + frame.addr, frame.len};
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{kSlots} * kSlotSize;

  struct Ring {
    void* memory = nullptr;
    std::size_t size = 0;
    xdp_ring_offset at{};

    bool map(int socket, const xdp_ring_offset& where, std::uint64_t page, std::size_t entry) {
      at = where;
      size = at.desc + kSlots * entry;
      void* const mapped =
          ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, socket, static_cast<off_t>(page));
      if (mapped != MAP_FAILED) memory = mapped;
      return memory != nullptr;
    }
    template <typename Value>
    Value* place(std::uint64_t offset) const {
      return reinterpret_cast<Value*>(static_cast<std::byte*>(memory) + offset);
    }
    std::uint32_t published() const {
      return __atomic_load_n(place<std::uint32_t>(at.producer), __ATOMIC_ACQUIRE);
    }
    std::uint32_t taken() const { return *place<std::uint32_t>(at.consumer); }
    void publish() { __atomic_store_n(place<std::uint32_t>(at.producer), published() + 1, __ATOMIC_RELEASE); }
    void take() { __atomic_store_n(place<std::uint32_t>(at.consumer), taken() + 1, __ATOMIC_RELEASE); }
    template <typename Entry>
    Entry* next() const {
      return place<Entry>(at.desc) + published() % kSlots;
    }
    template <typename Entry>
    Entry* oldest() const {
      return place<Entry>(at.desc) + taken() % kSlots;
    }
  };

  os::Descriptor socket_;
  std::byte* frames_ = nullptr;
  Ring fill_, completion_, received_, sent_;
};

template <typename Attributes>
int bpf_call(int command, Attributes& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

/// What gives AF_XDP sockets their frames; it works while both descriptors are open.
struct XdpProgram {
  os::Descriptor sockets;  ///< by queue
  os::Descriptor attachment;

  /// Loads a program that gives UDP datagrams (IPv4, without options) for `port` to the socket of their queue, and leaves the
  /// rest alone. -1 with an errno if it is refused.
  static os::Descriptor load(int sockets, std::uint16_t port) {
    const std::array<bpf_insn, 16> code{{
        {BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0},
        {BPF_LDX | BPF_W | BPF_MEM, 2, 1, offsetof(xdp_md, data), 0},
        {BPF_LDX | BPF_W | BPF_MEM, 3, 1, offsetof(xdp_md, data_end), 0},
        {BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0},
        {BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, 38},
        {BPF_JMP | BPF_JGT | BPF_X, 4, 3, 8, 0},
        {BPF_LDX | BPF_H | BPF_MEM, 5, 2, 36, 0},
        {BPF_JMP | BPF_JNE | BPF_K, 5, 0, 6, htons(port)},
        {BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, sockets},
        {0, 0, 0, 0, 0},
        {BPF_LDX | BPF_W | BPF_MEM, 2, 6, offsetof(xdp_md, rx_queue_index), 0},
        {BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS},
        {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map},
        {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
        {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS},
        {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
    }};
    static constexpr char kLicence[] = "BSD";
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_XDP;
    attributes.insns = reinterpret_cast<std::uintptr_t>(code.data());
    attributes.insn_cnt = code.size();
    attributes.license = reinterpret_cast<std::uintptr_t>(kLicence);
    return os::Descriptor(bpf_call(BPF_PROG_LOAD, attributes));
  }
  static os::Descriptor make_map() {
    bpf_attr attributes{};
    attributes.map_type = BPF_MAP_TYPE_XSKMAP;
    attributes.key_size = attributes.value_size = sizeof(std::uint32_t);
    attributes.max_entries = 1;
    return os::Descriptor(bpf_call(BPF_MAP_CREATE, attributes));
  }

  /// Frames of the interface's first queue for `port` go to the socket.
  bool serve(unsigned interface, std::uint16_t port, const XdpSocket& socket) {
    sockets = make_map();
    const os::Descriptor program = load(sockets.number(), port);
    const std::uint32_t queue = 0;
    const auto number = static_cast<std::uint32_t>(socket.number());
    bpf_attr entry{};
    entry.map_fd = static_cast<std::uint32_t>(sockets.number());
    entry.key = reinterpret_cast<std::uintptr_t>(&queue);
    entry.value = reinterpret_cast<std::uintptr_t>(&number);
    bpf_attr link{};
    link.link_create.prog_fd = static_cast<std::uint32_t>(program.number());
    link.link_create.target_ifindex = interface;
    link.link_create.attach_type = BPF_XDP;
    link.link_create.flags = XDP_FLAGS_SKB_MODE;
    if (!program || bpf_call(BPF_MAP_UPDATE_ELEM, entry) != 0) return false;
    attachment = os::Descriptor(bpf_call(BPF_LINK_CREATE, link));
    return static_cast<bool>(attachment);
  }
};

}  // namespace cluster::test
