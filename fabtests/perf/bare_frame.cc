// Raw Ethernet frames of an experimental type, sent one system call each and taken from a polled ring
// (TPACKET_V2) that the kernel fills: the shortest way for a frame that needs no driver of one's own.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "bare.h"

namespace perf {
namespace {

constexpr std::uint16_t kEtherType = 0x88B5;  // IEEE 802: local experimental
constexpr unsigned kSlotBytes = 2048, kSlots = 1024;
constexpr std::size_t kFrameMin = 60;
constexpr std::size_t kFrameMax = 1514;

class Wire {
 public:
  Wire(Line& line, const std::string& interface, std::size_t bytes)
      : frame_(std::clamp(bytes, kFrameMin, kFrameMax)) {
    socket_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (socket_ < 0) fail("AF_PACKET");
    ifreq request{};
    std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
    if (::ioctl(socket_, SIOCGIFHWADDR, &request) != 0) fail(interface.c_str());
    const std::string mine(request.ifr_hwaddr.sa_data, ETH_ALEN);
    open_ring();
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(kEtherType);
    address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
    const std::string theirs = line.exchange(mine);
    auto* header = reinterpret_cast<ether_header*>(frame_.data());
    std::memcpy(header->ether_dhost, theirs.data(), ETH_ALEN);
    std::memcpy(header->ether_shost, mine.data(), ETH_ALEN);
    header->ether_type = htons(kEtherType);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    ::munmap(ring_, kSlotBytes * kSlots);
    ::close(socket_);
  }

  void send() {
    while (::send(socket_, frame_.data(), frame_.size(), 0) < 0) {
      if (errno != ENOBUFS && errno != EAGAIN) fail("send");
    }
  }
  void receive() {
    auto* slot = reinterpret_cast<tpacket2_hdr*>(ring_ + std::size_t{next_} * kSlotBytes);
    std::atomic_ref<std::uint32_t> status(slot->tp_status);
    while ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) {
    }
    status.store(TP_STATUS_KERNEL, std::memory_order_release);
    next_ = (next_ + 1) % kSlots;
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }
  void open_ring() {
    const int version = TPACKET_V2, bypass = 1;
    const tpacket_req ring{kSlotBytes * kSlots, 1, kSlotBytes, kSlots};
    if (::setsockopt(socket_, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        ::setsockopt(socket_, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof bypass) != 0 ||
        ::setsockopt(socket_, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0) {
      fail("packet ring");
    }
    void* at = ::mmap(nullptr, kSlotBytes * kSlots, PROT_READ | PROT_WRITE, MAP_SHARED, socket_, 0);
    if (at == MAP_FAILED) fail("mmap");
    ring_ = static_cast<char*>(at);
  }

  int socket_ = -1;
  char* ring_ = nullptr;
  unsigned next_ = 0;
  std::vector<char> frame_;
};

}  // namespace

Work frame_work(const Item& item, Line& line, const std::string& interface) {
  const auto wire = std::make_shared<Wire>(line, interface, item.bytes);
  const bool alone = item.measure == "frame";
  const unsigned window = alone ? 1 : item.window;
  Work work;
  work.figure = alone ? Figure::one_way_us : Figure::messages_per_second;
  work.messages = alone ? 2 : window;
  work.bytes = work.messages * static_cast<double>(item.bytes);
  work.lead = [wire, window](std::uint64_t) {
    for (unsigned i = 0; i < window; ++i) wire->send();
    wire->receive();
  };
  work.follow = [wire, window](std::uint64_t) {
    for (unsigned i = 0; i < window; ++i) wire->receive();
    wire->send();
  };
  return work;
}

}  // namespace perf
