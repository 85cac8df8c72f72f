// The delay queue: holds frames that faults.bpf.c delays, and sends each when it is due.
//
//   delay_queue RING:INTERFACE:MARK...
//
// RING is the id of a kernel ring buffer into which one program puts struct held_frame and the frame;
// The process sends the frames to INTERFACE with MARK, so that the program there leaves them alone. It runs
// in the network namespace of the switch. Frames that are due at the same time leave in order of arrival.
// While FRAMES_MAX frames wait here, it does not read the rings; a frame that does not fit into its ring is
// lost and counted there. SIGTERM sends all held frames at once and ends the process. A line "ready" on
// standard output says that all rings are watched.
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "faults.h"

namespace {

constexpr std::size_t FRAMES_MAX = 65536;
constexpr std::size_t RING_BYTES = WAITING_BYTES;
constexpr int SEND_BUFFER = 64 << 20;
constexpr std::size_t ETHERNET_BYTES = 14;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "delay_queue: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// virtio_net_hdr of <linux/virtio_net.h>, which is no C++.
struct OffloadHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t headers_size = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
constexpr std::uint8_t NEEDS_CHECKSUM = 1;

/// The header that PACKET_VNET_HDR needs before the frame. The sender may have left the UDP or TCP checksum
/// to the hardware; then the header asks for its completion again.
class Checksum {
 public:
  explicit Checksum(std::vector<std::uint8_t>& frame) : frame_(frame) {
    if (frame.size() < ETHERNET_BYTES + 40) return;
    const std::uint8_t* ip = frame.data() + ETHERNET_BYTES;
    const unsigned type = static_cast<unsigned>(frame[12] << 8 | frame[13]);
    if (type == 0x0800 && (ip[6] & 0x3f) == 0 && ip[7] == 0) {
      postpone(static_cast<std::size_t>(ip[0] & 15) * 4, ip[9], 12, 8,
               static_cast<unsigned>(ip[2] << 8 | ip[3]));
    } else if (type == 0x86dd) {
      postpone(40, ip[6], 8, 32, static_cast<unsigned>(ip[4] << 8 | ip[5]) + 40);
    }
  }

  const OffloadHeader& header() const { return header_; }

 private:
  void postpone(std::size_t ip_bytes, unsigned protocol, std::size_t names_at, std::size_t names_bytes,
                unsigned total) {
    const std::size_t offset = protocol == IPPROTO_UDP ? 6 : 16;
    const std::size_t field = ETHERNET_BYTES + ip_bytes + offset;
    if ((protocol != IPPROTO_UDP && protocol != IPPROTO_TCP) || field + 2 > frame_.size() || total < ip_bytes)
      return;
    if (protocol == IPPROTO_UDP && frame_[field] == 0 && frame_[field + 1] == 0) return;  // has none
    std::uint32_t sum = protocol + total - static_cast<unsigned>(ip_bytes);
    for (std::size_t i = 0; i < names_bytes; i += 2) {
      const std::uint8_t* pair = frame_.data() + ETHERNET_BYTES + names_at + i;
      sum += static_cast<std::uint32_t>(pair[0] << 8 | pair[1]);
    }
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    frame_[field] = static_cast<std::uint8_t>(sum >> 8);
    frame_[field + 1] = static_cast<std::uint8_t>(sum);
    header_.flags = NEEDS_CHECKSUM;
    header_.checksum_start = static_cast<std::uint16_t>(ETHERNET_BYTES + ip_bytes);
    header_.checksum_offset = static_cast<std::uint16_t>(offset);
  }

  std::vector<std::uint8_t>& frame_;
  OffloadHeader header_;
};

/// Sends on the frames of one program.
class Exit {
 public:
  Exit(const std::string& interface, int mark) {
    socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (socket_ < 0 || setsockopt(socket_, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
        setsockopt(socket_, SOL_SOCKET, SO_MARK, &mark, sizeof mark) != 0) {
      give_up("packet socket");
    }
    setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &SEND_BUFFER, sizeof SEND_BUFFER);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
    if (address.sll_ifindex == 0 ||
        bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      give_up(interface);
    }
  }

  void send(std::vector<std::uint8_t>& frame) const {
    const Checksum checksum(frame);
    iovec pieces[] = {{const_cast<OffloadHeader*>(&checksum.header()), sizeof(OffloadHeader)},
                      {frame.data(), frame.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    sendmsg(socket_, &message, MSG_DONTWAIT);  // a full queue behind it loses the frame, as a port would
  }

 private:
  int socket_ = -1;
};

struct Frame {
  std::uint64_t due_ns;
  std::uint64_t arrival;
  const Exit* exit;
  std::unique_ptr<std::vector<std::uint8_t>> bytes;

  bool operator<(const Frame& other) const {  // the top of the queue is the earliest
    return due_ns != other.due_ns ? due_ns > other.due_ns : arrival > other.arrival;
  }
};

class DelayQueue {
 public:
  bool full() const { return waiting_.size() >= FRAMES_MAX; }
  bool empty() const { return waiting_.empty(); }
  std::uint64_t next_due_ns() const { return waiting_.top().due_ns; }

  void hold(std::uint64_t due_ns, const Exit& exit, const std::uint8_t* bytes, std::size_t length) {
    waiting_.push(
        {due_ns, ++arrivals_, &exit, std::make_unique<std::vector<std::uint8_t>>(bytes, bytes + length)});
  }

  void release(std::uint64_t until_ns) {
    while (!waiting_.empty() && waiting_.top().due_ns <= until_ns) {
      waiting_.top().exit->send(*waiting_.top().bytes);
      waiting_.pop();
    }
  }

 private:
  std::priority_queue<Frame> waiting_;
  std::uint64_t arrivals_ = 0;
};

/// The kernel's ring buffer, read where it lies.
class Ring {
 public:
  Ring(unsigned id, const Exit& exit) : exit_(exit) {
    bpf_attr attributes{};
    attributes.map_id = id;
    descriptor_ = static_cast<int>(syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, &attributes, sizeof attributes));
    if (descriptor_ < 0) give_up("ring " + std::to_string(id));
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* ours = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    void* theirs =
        mmap(nullptr, page + 2 * RING_BYTES, PROT_READ, MAP_SHARED, descriptor_, static_cast<off_t>(page));
    if (ours == MAP_FAILED || theirs == MAP_FAILED) give_up("memory of ring " + std::to_string(id));
    consumed_ = static_cast<std::uint64_t*>(ours);
    produced_ = static_cast<const std::uint64_t*>(theirs);
    records_ = static_cast<const std::uint8_t*>(theirs) + page;
  }

  int descriptor() const { return descriptor_; }

  void drain(DelayQueue& queue) {
    std::uint64_t position = *consumed_;
    while (!queue.full() && position < __atomic_load_n(produced_, __ATOMIC_ACQUIRE)) {
      const std::uint8_t* record = records_ + position % RING_BYTES;
      const std::uint32_t head =
          __atomic_load_n(reinterpret_cast<const std::uint32_t*>(record), __ATOMIC_ACQUIRE);
      if ((head & BPF_RINGBUF_BUSY_BIT) != 0) return;
      const std::uint32_t size = head & ~BPF_RINGBUF_DISCARD_BIT;
      if ((head & BPF_RINGBUF_DISCARD_BIT) == 0) {
        held_frame held;
        std::memcpy(&held, record + BPF_RINGBUF_HDR_SZ, sizeof held);
        queue.hold(held.due_ns, exit_, record + BPF_RINGBUF_HDR_SZ + sizeof held, held.length);
      }
      position += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
      __atomic_store_n(consumed_, position, __ATOMIC_RELEASE);
    }
  }

 private:
  const Exit& exit_;
  int descriptor_ = -1;
  std::uint64_t* consumed_ = nullptr;
  const std::uint64_t* produced_ = nullptr;
  const std::uint8_t* records_ = nullptr;
};

void serve(std::vector<Ring>& rings, int events, int signals) {
  DelayQueue queue;
  while (true) {
    timespec wait{1, 0};
    if (!queue.empty()) {
      const std::uint64_t now = now_ns();
      const std::uint64_t left = queue.next_due_ns() > now ? queue.next_due_ns() - now : 0;
      wait = {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    }
    epoll_event happened[16];
    const int count = epoll_pwait2(events, happened, 16, &wait, nullptr);
    for (int i = 0; i < count; ++i) {
      if (happened[i].data.fd == signals) {
        queue.release(UINT64_MAX);
        return;
      }
    }
    for (Ring& ring : rings) ring.drain(queue);
    queue.release(now_ns());
  }
}

void watch(int events, int descriptor, std::uint32_t how) {
  epoll_event event{};
  event.events = how;
  event.data.fd = descriptor;
  if (epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) != 0) give_up("epoll");
}

}  // namespace

int main(int count, char** words) {
  // Frames must not leave late: this process runs before others, and without the kernel's usual timer slack
  // of 50 us.
  setpriority(PRIO_PROCESS, 0, -20);
  prctl(PR_SET_TIMERSLACK, 1UL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  const int events = epoll_create1(EPOLL_CLOEXEC);
  if (signals < 0 || events < 0) give_up("epoll");
  watch(events, signals, EPOLLIN);

  std::vector<std::unique_ptr<Exit>> exits;
  std::vector<Ring> rings;
  for (int i = 1; i < count; ++i) {
    char interface[IF_NAMESIZE] = {};
    unsigned id = 0, mark = 0;
    if (std::sscanf(words[i], "%u:%15[^:]:%u", &id, interface, &mark) != 3) {
      std::fprintf(stderr, "delay_queue: '%s' is not RING:INTERFACE:MARK\n", words[i]);
      return 2;
    }
    exits.push_back(std::make_unique<Exit>(interface, static_cast<int>(mark)));
    rings.emplace_back(id, *exits.back());
    watch(events, rings.back().descriptor(), EPOLLIN | EPOLLET);  // level would spin while the queue is full
  }
  std::puts("ready");
  std::fflush(stdout);
  serve(rings, events, signals);
  return 0;
}
