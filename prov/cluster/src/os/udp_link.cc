#include "os/udp_link.h"

#include <algorithm>
#include <utility>

#include "os/aside_receiver.h"
#include "os/packet_headers.h"
#include "os/udp_receiver.h"
#include "os/udp_sender.h"

namespace cluster::os {
namespace {

constexpr std::size_t kReceiveBuffers = 16;
constexpr std::size_t kFrameMax = 65000;

/// IP and UDP.
std::size_t headers_of(SocketAddress::Family family) { return headers_size(family) - kEthernetBytes; }

class UdpLink final : public link::Link {
 public:
  UdpLink(std::shared_ptr<UdpPort> port, unsigned mtu, const Environment& environment)
      : port_(port),
        frame_max_(frame_max_within(mtu, port->name().family())),
        sender_(port, environment.counters),
        aside_(port, environment),
        receiver_(std::move(port), kReceiveBuffers, UdpReceiver::Timestamps::yes, environment) {}

  const char* name() const override { return "udp"; }
  std::size_t frame_max() const override { return frame_max_; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override { return sender_.send(frames); }
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    const std::size_t aside = aside_.receive(frames.first(frames.size() / 2));  // members have their turn, too
    return aside + receiver_.receive(frames.subspan(aside));
  }
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override {
    return port_->read_path_errors(path_errors);
  }
  std::vector<int> descriptors() const override { return {port_->socket()}; }
  void thin(const link::Thinning& thinning) override { aside_.begin_or_end(port_->thin(thinning)); }
  void before_sleep() override { aside_.before_sleep(); }

 private:
  std::shared_ptr<UdpPort> port_;
  std::size_t frame_max_;
  UdpSender sender_;
  AsideReceiver aside_;
  UdpReceiver receiver_;
};

}  // namespace

std::size_t frame_max_within(unsigned mtu, SocketAddress::Family family) {
  const std::size_t headers = headers_of(family);
  return mtu <= headers ? 0 : std::min(mtu - headers, kFrameMax);
}

std::size_t mtu_for(std::size_t frame_max, SocketAddress::Family family) {
  return frame_max + headers_of(family);
}

std::unique_ptr<link::Link> open_udp_link(std::shared_ptr<UdpPort> port, unsigned mtu,
                                          const Environment& environment) {
  return std::make_unique<UdpLink>(std::move(port), mtu, environment);
}

}  // namespace cluster::os
