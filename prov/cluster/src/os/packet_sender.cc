#include "os/packet_sender.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "os/packet_headers.h"

namespace cluster::os {
namespace {

constexpr int kSendBuffer = 2 * 1024 * 1024;

int bind_to(int socket, int index) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = 0;  // the socket receives nothing
  address.sll_ifindex = index;
  return bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

int set_up(int socket, int index, bool qdisc_bypass) {
  const int on = 1;
  if (setsockopt(socket, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0) return errno;
  // Ignores failures, because without these two options the socket is only slower.
  if (qdisc_bypass) setsockopt(socket, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
  if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof kSendBuffer) != 0) {
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  }
  return bind_to(socket, index);
}

}  // namespace

std::unique_ptr<PacketSender> PacketSender::open(int index, const Origin& origin,
                                                 const PacketSenderSettings& settings, Counters& counters,
                                                 int& error) {
  Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  error = socket ? set_up(socket.number(), index, settings.qdisc_bypass) : errno;
  if (error != 0) return nullptr;
  return std::unique_ptr<PacketSender>(
      new PacketSender(std::move(socket), index, origin, settings, counters));
}

PacketSender::PacketSender(Descriptor socket, int index, const Origin& origin,
                           const PacketSenderSettings& settings, Counters& counters)
    : socket_(std::move(socket)),
      index_(index),
      origin_(origin),
      counters_(counters),
      segment_max_(settings.segment_max),
      ethertype_(settings.ethertype),
      batch_(settings.offload) {}

std::size_t PacketSender::send(std::span<const link::OutFrame> frames) {
  // batch_ must obey segment_max_, because the kernel checks the size of single frames (EMSGSIZE), but not
  // the size of the segments of a super-frame.
  const std::size_t sent = batch_.send(
      frames, segment_max_, socket_.number(), counters_,
      [this](std::span<const link::OutFrame> run, std::size_t i) { open_message(run, headers_[i].data()); });
  if (frames.size() == 1) keep_headers(frames[0]);
  return over(sent, frames.size());
}

/// Does not keep headers with a UDP checksum.
void PacketSender::keep_headers(const link::OutFrame& frame) {
  const bool ethertype = by_ethertype(*frame.path, frame.size);
  if (origin_.address.family() == SocketAddress::Family::v6 && !ethertype) return;
  kept_.write(origin_, *frame.path, ethertype);
}

std::optional<std::size_t> PacketSender::send_on_kept_path(const link::OutFrame& frame) {
  const bool ethertype = by_ethertype(*frame.path, frame.size);
  if (!kept_.fits(*frame.path, ethertype)) return std::nullopt;
  if (ethertype) ++counters_.link_ethertype_sent;
  const ConstBytes headers = kept_.with_payload(frame.size);
  const std::size_t sent = batch_.send_lone(nullptr, 0, headers, frame, socket_.number(), counters_);
  return sent != 0 ? sent : over(sent, 1);
}

/// Returns how many of the frames count as sent. If the interface has no carrier and the kernel accepted no
/// frame, all frames count as sent.
std::size_t PacketSender::over(std::size_t sent, std::size_t frames) {
  if (sent != 0 || frames == 0 || has_carrier()) return sent;
  counters_.link_unsendable += frames;
  return frames;
}

void PacketSender::renew(int index, const Origin& origin, std::size_t segment_max) {
  if (index != index_ && bind_to(socket_.number(), index) == 0) index_ = index;
  origin_ = origin;
  segment_max_ = segment_max;
  kept_.forget();
}

/// Called when the kernel accepts no frame. Where frames bypass the queueing discipline, the kernel returns
/// ENOBUFS both if the interface has no carrier and if its queue is full. Without a carrier, the link drops
/// the frames, as a network with a cable cut further away would. The frames do not wait until the carrier
/// returns.
bool PacketSender::has_carrier() const {
  ifreq request{};
  request.ifr_ifindex = index_;
  if (::ioctl(socket_.number(), SIOCGIFNAME, &request) != 0) return true;
  return ::ioctl(socket_.number(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_RUNNING) != 0;
}

void PacketSender::open_message(std::span<const link::OutFrame> run, std::byte* header) {
  const SocketAddress::Family family = origin_.address.family();
  const std::size_t size = headers_size(family);
  std::size_t payload = 0;
  for (const link::OutFrame& frame : run) payload += frame.size;
  const bool super = run.size() > 1;  // the kernel segments only frames with an IP EtherType
  const bool ethertype = !super && by_ethertype(*run[0].path, payload);
  const bool checksum = super || (family == SocketAddress::Family::v6 && !ethertype);
  OffloadHeader offload;
  if (checksum) {
    offload.flags = OffloadHeader::kNeedsChecksum;
    offload.checksum_start = static_cast<std::uint16_t>(size - kUdpBytes);
    offload.checksum_offset = kUdpChecksumOffset;
  }
  if (super) {
    offload.gso_type = OffloadHeader::kGsoUdpL4;
    offload.gso_size = static_cast<std::uint16_t>(run[0].size);
    offload.headers_size = static_cast<std::uint16_t>(size);
  }
  std::memcpy(header, &offload, sizeof offload);
  const Framing framing = ethertype ? Framing::own : checksum ? Framing::udp_sum_later : Framing::udp;
  write_headers(header + sizeof(OffloadHeader), origin_, *run[0].path, payload, framing);
  if (ethertype) ++counters_.link_ethertype_sent;
  batch_.open(run.size(), run[0].size);
  batch_.add({header, sizeof(OffloadHeader) + size});
  batch_.add_pieces(run);
}

}  // namespace cluster::os
