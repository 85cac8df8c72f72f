#include "sim/group_socket.h"

#include <array>
#include <utility>

#include "seal/group_seal.h"
#include "seal/sealed_link.h"

namespace cluster::sim {

class GroupSocket::Wire final : public link::Link {
 public:
  Wire(const SocketAddress& name, GroupNetwork& network) : name_(name), network_(network) {}

  const char* name() const override { return "group"; }
  std::size_t frame_max() const override { return 1500; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    return network_.multicast(name_, frames);
  }
  std::size_t receive_burst(std::span<link::InFrame>) override { return 0; }
  std::size_t read_path_errors(std::span<link::PathError>) override { return 0; }

 private:
  SocketAddress name_;
  GroupNetwork& network_;
};

/// Holds one arrival at a time.
class GroupSocket::Inbox final : public link::MulticastReceiver {
 public:
  std::size_t receive_burst(std::span<link::InFrame> frames) override {
    frames[0] = {.bytes = bytes, .from = {.to = from}};
    return 1;
  }
  int descriptor() const override { return -1; }

  SocketAddress from;
  std::vector<std::byte> bytes;
};

class GroupSocket::Joiner final : public link::MulticastJoiner {
 public:
  explicit Joiner(Inbox*& inbox) : inbox_(inbox) {}
  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress&, std::span<const SocketAddress>,
                                                std::string&) override {
    auto inbox = std::make_unique<Inbox>();
    inbox_ = inbox.get();
    return inbox;
  }

 private:
  Inbox*& inbox_;
};

SocketAddress GroupSocket::group() {
  const std::array<std::byte, 4> ip{std::byte{239}, std::byte{192}, std::byte{1}, std::byte{1}};
  return SocketAddress::v4(ip.data(), 7000);
}

GroupSocket::GroupSocket(const SocketAddress& name, const std::optional<seal::Credentials>& credentials,
                         EventQueue& events, GroupNetwork& network, SeededRandom random)
    : clock_(events, {}),
      random_(random),
      link_(std::make_unique<Wire>(name, network)),
      joiner_(std::make_unique<Joiner>(inbox_)) {
  if (credentials) {
    const Environment environment{clock_, random_, log_, counters_};
    link_ =
        std::make_unique<seal::SealedLink>(std::move(link_), *credentials, std::vector{name}, environment);
    joiner_ = std::make_unique<seal::SealedGroups>(std::move(joiner_), *credentials, name, environment);
  }
  std::string reason;
  receiver_ = joiner_->join(group(), {}, reason);
}

GroupSocket::~GroupSocket() = default;

ConstBytes GroupSocket::open(const SocketAddress& from, const std::vector<std::byte>& bytes) {
  inbox_->from = from;
  inbox_->bytes = bytes;
  std::array<link::InFrame, link::MulticastReceiver::kBurst> frames;
  receiver_->receive_burst(frames);
  return frames[0].bytes;
}

}  // namespace cluster::sim
