#include "sim/connection_host.h"

#include <algorithm>

#include "sim/failure.h"
#include "wire/control.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamHost = 2;
constexpr std::uint64_t kStreamEngine = 3;
constexpr std::uint64_t kRealTimeOrigin = 1'700'000'000'000'000'000;
constexpr std::size_t kFrameMax = 1472;
constexpr std::size_t kMessageMax = 200'000;
constexpr Duration kPollGap = 2us;
constexpr Duration kLinger = 2s;

/// Writes log lines to the trace only.
class TraceLog final : public Log {
 public:
  TraceLog(Trace& trace, HostNumber host) : trace_(trace), host_(host) {}
  bool enabled(LogLevel) const override { return trace_.on(); }
  void write(LogLevel, const char* line) override { trace_.line("host %u says: %s", host_, line); }

 private:
  Trace& trace_;
  HostNumber host_;
};

/// Lives as long as the engine, which refers to the log.
struct Resources {
  Resources(Trace& trace, HostNumber host) : log(trace, host) {}
  TraceLog log;
};

}  // namespace

ConnectionHost::ConnectionHost(const ConnectionWorld& world, HostNumber number)
    : world_(world),
      number_(number),
      clock_(world.events, Duration{0}),
      random_(SeededRandom::stream(world.seed, kStreamHost, number)),
      engine_random_(SeededRandom::stream(world.seed, kStreamEngine, number)) {
  world_.network.connect(number, *this);
}

ConnectionHost::~ConnectionHost() {
  if (link_ != nullptr) link_->disconnect();
}

void ConnectionHost::open() {
  counters_ = {};
  connected_ = false;
  paused_until_ = Time{};
  shutdown_at_ = close_at_ = kNever;
  script_ = {};
  place_.reset();
  auto link = std::make_unique<SimLink>(world_.network, number_, 0, ++incarnation_, kFrameMax, false);
  link_ = link.get();
  const auto resources = std::make_shared<Resources>(world_.trace, number_);
  const auto now = static_cast<std::uint64_t>(world_.events.now().time_since_epoch().count());
  engine_ = std::make_unique<engine::Engine>(
      engine::EngineParts{.environment = {clock_, engine_random_, resources->log, counters_},
                          .settings = world_.settings,
                          .name = address_of(number_),
                          .epoch = kRealTimeOrigin + now,
                          .link = std::move(link),
                          .local_listener = nullptr,
                          .resources = resources,
                          .roster = std::make_shared<const engine::EndpointRoster>()});
  wake(world_.events.now());
}

void ConnectionHost::listen() {
  open();
  world_.trace.line("host %u listens", number_);
  engine_->open_connection(static_cast<connection::RequestListener&>(*this));
  engine_->attach(engine_->connection_addresses(), {});
}

void ConnectionHost::open_end(ConnectionSide side, ConnectionOracle::Attempt attempt,
                              const ConnectionScript& script) {
  open();
  place_ = Place{attempt, side};
  script_ = script;
  next_act_ = world_.events.now();
  if (script.lasts != Duration::max()) shutdown_at_ = world_.events.now() + script.lasts;
  engine_->open_connection(static_cast<connection::ConnectionListener&>(*this));
  engine_->with_connection([&](engine::ConnectionEndpoint& all) { end_ = &all.connection(); });
  engine_->attach(engine_->connection_addresses(), {.tx_queue = &sends_, .rx_queue = &receives_});
  for (std::uint32_t i = 0; i < script_.early_receives; ++i) post_receive();
}

void ConnectionHost::dial(const ConnectionHost& passive, const ConnectionScript& script) {
  const ConnectionOracle::Attempt attempt = world_.oracle.begin(number_, passive.number_, passive.listens());
  world_.trace.line("host %u asks host %u: attempt %u", number_, passive.number_, attempt);
  open_end(ConnectionSide::active, attempt, script);
  const std::vector<std::byte> data = ConnectionOracle::data_of(attempt);
  with_end([&](connection::ConnectionEnd& end) {
    end.connect(address_of(passive.number_), random_.next(), data);
  });
}

void ConnectionHost::take(const PendingRequest& pending, const ConnectionScript& script) {
  world_.trace.line("host %u takes attempt %u", number_, pending.attempt);
  world_.oracle.taken(pending.attempt, number_);
  open_end(ConnectionSide::passive, pending.attempt, script);
  with_end([&](connection::ConnectionEnd& end) { end.set_asker(pending.request.asker, pending.request.id); });
}

void ConnectionHost::reject(const PendingRequest& pending, ConstBytes reason) {
  world_.trace.line("host %u rejects attempt %u", number_, pending.attempt);
  world_.oracle.rejects(pending.attempt);
  engine_->with_connection(
      [&](engine::ConnectionEndpoint& all) { all.listener().reject(pending.request, reason); });
  wake(world_.events.now());
}

void ConnectionHost::hand_over(const PendingRequest& pending, HostNumber taker) {
  engine_->with_connection(
      [&](engine::ConnectionEndpoint& all) { all.listener().hand_over(pending.request, address_of(taker)); });
  wake(world_.events.now());
}

void ConnectionHost::accept() {
  world_.trace.line("host %u accepts attempt %u", number_, place_->attempt);
  world_.oracle.accepts(place_->attempt);
  const std::vector<std::byte> data = ConnectionOracle::data_of(place_->attempt);
  with_end([&](connection::ConnectionEnd& end) { end.accept(data); });
}

void ConnectionHost::shut_down() {
  shutdown_at_ = kNever;
  if (world_.oracle.is_over(*place_)) return;
  world_.trace.line("host %u shuts attempt %u down", number_, place_->attempt);
  world_.oracle.shuts_down(*place_);
  if (!with_end([](connection::ConnectionEnd& end) { return end.shut_down(); }))
    throw SafetyFailure("an end cannot be shut down although it is not over");
}

void ConnectionHost::close() {
  if (exiting()) return;
  if (place_) {
    shut_down();
  } else {
    world_.oracle.passive_ends(number_);
    for (const PendingRequest& each : world_.requests) {
      if (each.passive == number_) reject(each, {});
    }
    forget_requests();
  }
  exit_deadline_ = world_.events.now() + kLinger;
  wake(world_.events.now());
}

void ConnectionHost::kill() {
  world_.trace.line("host %u: its process is killed", number_);
  link_->disconnect();
  end_process(false);
}

void ConnectionHost::forget_requests() {
  std::erase_if(world_.requests, [this](const PendingRequest& each) { return each.passive == number_; });
}

void ConnectionHost::end_process(bool orderly) {
  world_.trace.line("host %u: its process ends", number_);
  place_ ? world_.oracle.process_ends(*place_, orderly) : world_.oracle.passive_ends(number_);
  forget_requests();
  engine_.reset();
  link_ = nullptr;
  exit_deadline_.reset();
  buffers_.clear();
  contents_.clear();
  const auto all = [](const auto&) { return true; };
  const auto drop = [](const auto&) {};
  sends_.drain(~std::size_t{0}, all, drop);
  receives_.drain(~std::size_t{0}, all, drop);
  next_poll_.cancel();
}

void ConnectionHost::pause(Time until) {
  paused_until_ = until;
  wake(until);
}

void ConnectionHost::finish() {
  script_.sends = script_.late_receives = 0;
  pause(world_.events.now());
}

void ConnectionHost::wake(Time at) {
  if (engine_ != nullptr) next_poll_.move_to(at, world_.events, *this);
}

void ConnectionHost::handle_event(std::uint64_t note) {
  if (engine_ == nullptr || !next_poll_.begin(note)) return;
  if (world_.events.now() < paused_until_) return wake(paused_until_);
  turn();
}

void ConnectionHost::turn() {
  const Time now = world_.events.now();
  const std::uint64_t frames_before = counters_.frames_received + counters_.frames_sent;
  engine_->poll();
  read_completions();
  const bool quiescent = engine_->quiescent();
  if (exiting() && (quiescent || now >= *exit_deadline_)) return end_process(quiescent);
  const bool acted = act();
  read_completions();
  if (acted || counters_.frames_received + counters_.frames_sent != frames_before || link_->has_frames())
    return wake(now + random_.between(Duration{1}, kPollGap));
  wake(std::max(engine_->next_deadline(), now + kPollGap));
  if (place_ && !exiting()) wake(std::max(std::min({next_act_, shutdown_at_, close_at_}), now + kPollGap));
  if (exiting()) wake(*exit_deadline_);
}

/// Returns true if the application did anything.
bool ConnectionHost::act() {
  const Time now = world_.events.now();
  if (!place_ || exiting()) return false;
  if (close_at_ == kNever && world_.oracle.is_over(*place_)) close_at_ = now + script_.stays;
  if (now >= close_at_) {
    close();
    return true;
  }
  if (now >= shutdown_at_) {
    script_.closes ? close() : shut_down();
    return true;
  }
  const bool busy = connected_ && script_.sends + script_.late_receives > 0;
  if (!busy) next_act_ = kNever;
  if (now < next_act_) return false;
  next_act_ = now + random_.between(Duration{0}, script_.pace);
  if (random_.below(script_.sends + script_.late_receives) < script_.sends) {
    --script_.sends;
    send();
  } else {
    --script_.late_receives;
    post_receive();
  }
  return true;
}

void ConnectionHost::post_receive() {
  buffers_.push_back({world_.oracle.posts_receive(*place_), std::vector<std::byte>(kMessageMax)});
  Buffer& buffer = buffers_.back();
  const Bytes slice(buffer.bytes);
  const Status status = engine_->receive(
      {.slices = {&slice, 1}, .from = engine::ConnectionEndpoint::kPeer, .context = &buffer});
  if (status != Status::ok) throw SafetyFailure(std::string("a receive is refused: ") + describe(status));
}

void ConnectionHost::send() {
  const std::size_t size =
      random_.chance(kMillion / 5) ? random_.between(60'000, kMessageMax) : random_.between(8, 3000);
  contents_.push_back(world_.oracle.next_message(*place_, size));
  const ConstBytes slice(contents_.back());
  const Status status = engine_->send({.slices = {&slice, 1},
                                       .length = size,
                                       .to = engine::ConnectionEndpoint::kPeer,
                                       .context = &contents_.back()});
  if (status == Status::ok) return world_.oracle.sent(*place_);
  if (status != Status::again) throw SafetyFailure(std::string("a send is refused: ") + describe(status));
  contents_.pop_back();
}

void ConnectionHost::read_completions() {
  if (!place_) return;
  const auto all = [](const auto&) { return true; };
  constexpr std::size_t kEverything = ~std::size_t{0};
  std::vector<protocol::Completion> ended;
  receives_.drain(kEverything, all, [&](const protocol::Completion& each) { ended.push_back(each); });
  for (const protocol::Completion& each : ended) {
    const auto& buffer = *static_cast<const Buffer*>(each.context);
    world_.trace.line("host %u: receive %u ends: %s", number_, buffer.receive, describe(each.status));
    if (each.status == Status::ok) {
      world_.oracle.received(*place_, buffer.receive, ConstBytes(buffer.bytes).first(each.length));
    } else {
      world_.oracle.receive_failed(*place_, buffer.receive);
    }
  }
  ended.clear();
  sends_.drain(kEverything, all, [&](const protocol::Completion& each) { ended.push_back(each); });
  for (const protocol::Completion& each : ended) world_.oracle.send_ended(*place_, each.status);
}

void ConnectionHost::connected(ConstBytes data) {
  world_.trace.line("host %u: attempt %u is connected", number_, place_->attempt);
  connected_ = true;
  next_act_ = world_.events.now();
  world_.oracle.connected(*place_, host_of(end_->peer()), data);
}

void ConnectionHost::refused(Status cause, ConstBytes data) {
  world_.trace.line("host %u: attempt %u is refused: %s", number_, place_->attempt, describe(cause));
  world_.oracle.refused(*place_, cause, data);
}

void ConnectionHost::ended(const SocketAddress& peer, Status cause) {
  world_.trace.line("host %u: attempt %u is over with host %u: %s", number_, place_->attempt, host_of(peer),
                    describe(cause));
  connected_ = false;
  world_.oracle.ended(*place_, cause);
}

bool ConnectionHost::requested(const connection::ConnectRequest& request, ConstBytes data) {
  const ConnectionOracle::Attempt attempt = world_.oracle.requested(host_of(request.asker), number_, data);
  world_.trace.line("host %u is asked: attempt %u", number_, attempt);
  if (exiting()) return false;
  world_.requests.push_back({attempt, number_, request});
  return true;
}

bool ConnectionHost::deliver(std::unique_ptr<Packet>& packet) {
  if (engine_ == nullptr) return false;
  const Thinner::Place place = link_->place_of(*packet);
  if (place == Thinner::Place::responder || place == Thinner::Place::nowhere) {
    if (place == Thinner::Place::responder) answer_keep_alive(*packet);
    world_.network.recycle(std::move(packet));
    return true;
  }
  link_->arrive(packet, place);
  if (place == Thinner::Place::engine) wake(world_.events.now() + random_.between(Duration{1}, kPollGap));
  return true;
}

/// Answers in place of the keep-alive responder, which shares nothing with the engine.
void ConnectionHost::answer_keep_alive(const Packet& packet) {
  wire::FrameView view;
  if (wire::admit(packet.bytes, view) != wire::Refusal::none) return;
  const wire::ControlFrame alive = wire::ControlFrame::alive(view);
  const link::Path path{address_of(packet.from), {}, false};
  link::OutFrame frame;
  frame.path = &path;
  frame.add(alive.bytes());
  world_.network.send(number_, 0, incarnation_, frame);
}

void ConnectionHost::deliver_path_error(const link::PathError& error) {
  if (link_ != nullptr) link_->add_path_error(error);
}

}  // namespace cluster::sim
