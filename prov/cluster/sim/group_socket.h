// Joins a simulated member to the multicast of its network: a link to send by, and a socket to receive from.
// If the member has a key, both are sealed like those of an engine.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/environment.h"
#include "link/multicast.h"
#include "seal/job_key.h"
#include "sim/event_queue.h"
#include "sim/group_network.h"
#include "sim/seeded_random.h"
#include "sim/sim_clock.h"
#include "wire/admit.h"

namespace cluster::sim {

class GroupSocket {
 public:
  GroupSocket(const SocketAddress& name, const std::optional<seal::Credentials>& credentials,
              EventQueue& events, GroupNetwork& network, SeededRandom random);
  ~GroupSocket();

  static SocketAddress group();
  link::Link& link() { return *link_; }
  /// Returns an arrived frame as the user of the socket gets it. The result is valid until the next call.
  ConstBytes open(const SocketAddress& from, const std::vector<std::byte>& bytes);
  /// Returns how to admit the frames that open() returns.
  wire::Integrity integrity() const { return link_->integrity(); }
  const Counters& counters() const { return counters_; }

 private:
  class Wire;
  class Inbox;
  class Joiner;
  class NoLog final : public Log {
    bool enabled(LogLevel) const override { return false; }
    void write(LogLevel, const char*) override {}
  };

  SimClock clock_;
  SeededRandom random_;
  NoLog log_;
  Counters counters_;
  Inbox* inbox_ = nullptr;
  std::unique_ptr<link::Link> link_;
  std::unique_ptr<link::MulticastJoiner> joiner_;
  std::unique_ptr<link::MulticastReceiver> receiver_;
};

}  // namespace cluster::sim
