// A host of the simulated network. It has at most one endpoint of type FI_EP_MSG at a time: a passive one,
// or one end of a connection with its application. Successive endpoints have the same address.
//
// The application follows its script: it posts receives, sends, shuts down, or closes the endpoint. A
// passive endpoint passes its requests to the simulation, which answers them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "sim/connection_oracle.h"
#include "sim/next_poll.h"
#include "sim/sim_clock.h"
#include "sim/sim_link.h"
#include "sim/sim_network.h"

namespace cluster::sim {

/// What the application at one end does, unless the connection ends before.
struct ConnectionScript {
  Duration stays{0};                 ///< from the end of the connection until the endpoint closes
  std::uint32_t early_receives = 0;  ///< posted when the endpoint opens
  std::uint32_t late_receives = 0;
  std::uint32_t sends = 0;
  Duration pace{0};                  ///< longest time between two sends or late receives
  Duration lasts = Duration::max();  ///< from the opening of the endpoint to the shutdown
  bool closes = false;               ///< the shutdown closes the endpoint, too
};

/// A request that waits for an answer.
struct PendingRequest {
  ConnectionOracle::Attempt attempt = 0;
  HostNumber passive = 0;
  connection::ConnectRequest request;
};

/// What all hosts have in common.
struct ConnectionWorld {
  EventQueue& events;
  SimNetwork& network;
  Trace& trace;
  ConnectionOracle& oracle;
  std::uint64_t seed;
  transport::EngineSettings settings;
  std::vector<PendingRequest>& requests;  ///< those that have come and are not answered yet
};

class ConnectionHost final : public EventHandler,
                             public NetworkNode,
                             private connection::ConnectionListener,
                             private connection::RequestListener {
 public:
  using Place = ConnectionOracle::Place;

  ConnectionHost(const ConnectionWorld& world, HostNumber number);
  ~ConnectionHost() override;

  HostNumber number() const { return number_; }
  bool free() const { return engine_ == nullptr; }
  bool exiting() const { return exit_deadline_.has_value(); }
  bool listens() const { return engine_ != nullptr && !place_ && !exiting(); }
  /// Returns true if the endpoint is one end of a connection or of an attempt to connect.
  bool is_end() const { return engine_ != nullptr && place_; }
  /// Returns true if the endpoint was opened for a request from this address, and its connection is not
  /// over.
  bool waits_for(const SocketAddress& asker) const {
    return is_end() && place_->side == ConnectionSide::passive && end_->peer() == asker &&
           !world_.oracle.is_over(*place_);
  }
  /// Returns true if the endpoint was opened for the request of this attempt, and has neither accepted the
  /// request nor shut down.
  bool may_accept(ConnectionOracle::Attempt attempt) const {
    const bool opened_for_it =
        is_end() && place_->attempt == attempt && place_->side == ConnectionSide::passive;
    return opened_for_it && end_->state() == connection::ConnectionEnd::State::asked;
  }

  void listen();
  /// The passive endpoint rejects a request, or says that the endpoint of another host will answer it.
  void reject(const PendingRequest& pending, ConstBytes reason);
  void hand_over(const PendingRequest& pending, HostNumber taker);
  void dial(const ConnectionHost& passive, const ConnectionScript& script);
  void take(const PendingRequest& pending, const ConnectionScript& script);
  /// The application accepts the request for which the endpoint was opened.
  void accept();
  void shut_down();
  /// The application closes the endpoint. A connection is shut down, and unanswered requests are rejected.
  /// The process ends when the engine owes nothing any more, or after a limit.
  void close();
  void kill();
  /// The application does not run until this time. The keep-alive responder still answers.
  void pause(Time until);
  /// The application neither sends nor posts receives any more. If it is paused, the pause ends.
  void finish();

  void handle_event(std::uint64_t note) override;
  bool deliver(std::unique_ptr<Packet>& packet) override;
  void deliver_path_error(const link::PathError& error) override;

 private:
  struct Buffer {
    std::uint32_t receive;
    std::vector<std::byte> bytes;
  };

  void open();
  void answer_keep_alive(const Packet& packet);
  void open_end(ConnectionSide side, ConnectionOracle::Attempt attempt, const ConnectionScript& script);
  void end_process(bool orderly);
  void forget_requests();
  void turn();
  bool act();
  void post_receive();
  void send();
  void read_completions();
  void wake(Time at);
  template <typename Act>
  auto with_end(Act&& act) {
    wake(world_.events.now());
    return engine_->with_connection([&](engine::ConnectionEndpoint&) { return act(*end_); });
  }

  void connected(ConstBytes data) override;
  void refused(Status cause, ConstBytes data) override;
  void ended(const SocketAddress& peer, Status cause) override;
  bool requested(const connection::ConnectRequest& request, ConstBytes data) override;

  ConnectionWorld world_;
  HostNumber number_;
  SimClock clock_;
  SeededRandom random_;
  SeededRandom engine_random_;
  NextPoll next_poll_;
  std::uint32_t incarnation_ = 0;
  // The following members belong to the present endpoint.
  Counters counters_;
  std::optional<Place> place_;  ///< which end it is; a passive endpoint has none
  ConnectionScript script_;
  Time next_act_{};
  Time shutdown_at_ = kNever;
  Time close_at_ = kNever;
  Time paused_until_{};
  std::optional<Time> exit_deadline_;
  bool connected_ = false;
  protocol::CompletionQueue sends_;
  protocol::CompletionQueue receives_;
  std::deque<Buffer> buffers_;
  std::deque<std::vector<std::byte>> contents_;  ///< the bytes of sends
  SimLink* link_ = nullptr;
  connection::ConnectionEnd* end_ = nullptr;  ///< belongs to the engine
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace cluster::sim
