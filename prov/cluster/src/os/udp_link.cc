#include "os/udp_link.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "os/aside_receiver.h"
#include "os/interface_watch.h"
#include "os/packet_headers.h"
#include "os/udp_bursts.h"

namespace cluster::os {
namespace {

constexpr std::size_t kReceiveBuffers = 16;
constexpr std::size_t kFrameMax = 65000;
constexpr std::size_t kFrameLeast = 512;  // what an opening may say (docs/protocol.md 2.1)

/// IP and UDP.
std::size_t headers_of(SocketAddress::Family family) { return headers_size(family) - kEthernetBytes; }

class UdpLink final : public link::Link {
 public:
  UdpLink(std::shared_ptr<UdpPort> port, unsigned mtu, const Environment& environment)
      : port_(port),
        interface_(port->name(), 0, environment.log),
        frame_max_opened_(frame_max_within(mtu, port->name().family())),
        frame_max_(frame_max_opened_),
        sender_(port, environment.counters),
        aside_(port, environment),
        receiver_(std::move(port), kReceiveBuffers, UdpReceiver::Timestamps::yes, environment) {}

  const char* name() const override { return "udp"; }
  std::size_t frame_max() const override { return frame_max_; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    interface_.ask_for_doubtful(frames);
    return sender_.send(frames);
  }
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    if (interface_.changed()) [[unlikely]]
      renew();
    const std::size_t aside =
        aside_.receive(frames.first(frames.size() / 2));  // members have their turn, too
    return aside + receiver_.receive(frames.subspan(aside));
  }
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override {
    return port_->read_path_errors(path_errors);
  }
  std::vector<int> descriptors() const override { return {port_->socket()}; }
  void thin(const link::Thinning& thinning) override { aside_.begin_or_end(port_->thin(thinning)); }
  void before_sleep() override { aside_.before_sleep(); }

 private:
  void renew() {
    const std::optional<Interface> now = interface_.renew();
    if (!now) return;
    frame_max_ = frame_max_renewed(frame_max_opened_, now->mtu, port_->name().family());
    port_->move_to(now->index);
  }

  std::shared_ptr<UdpPort> port_;
  WatchedInterface interface_;
  std::size_t frame_max_opened_;
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

std::size_t frame_max_renewed(std::size_t opened, unsigned mtu, SocketAddress::Family family) {
  return std::min(opened, std::max(frame_max_within(mtu, family), kFrameLeast));
}

std::size_t mtu_for(std::size_t frame_max, SocketAddress::Family family) {
  return frame_max + headers_of(family);
}

std::unique_ptr<link::Link> open_udp_link(std::shared_ptr<UdpPort> port, unsigned mtu,
                                          const Environment& environment) {
  return std::make_unique<UdpLink>(std::move(port), mtu, environment);
}

}  // namespace cluster::os
