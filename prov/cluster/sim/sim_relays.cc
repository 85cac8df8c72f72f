#include "sim/sim_relays.h"

#include <utility>

namespace cluster::sim {
namespace {

constexpr std::uint64_t kStreamRelays = 15;
constexpr std::uint64_t kStreamRelay = 16;
constexpr std::size_t kFrameMax = 8972 + 128;
/// How long a relay needs until it reads what has arrived.
constexpr Duration kPollGap = 2us;

}  // namespace

/// What a relay gets from outside.
class SimRelay::Environs final : public Log, public Random {
 public:
  Environs(const EventQueue& event_queue, SeededRandom random) : clock_(event_queue, 0s), random_(random) {}

  Environment environment() { return {clock_, *this, *this, counters_}; }
  bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, const char*) override {}
  std::uint64_t next() override { return random_.next(); }

 private:
  SimClock clock_;
  SeededRandom random_;
  Counters counters_;
};

SimRelay::SimRelay(EventQueue& event_queue, SimNetwork& network, HostNumber number, relay::JobRelayKeys keys,
                   SeededRandom random)
    : event_queue_(event_queue),
      network_(network),
      number_(number),
      keys_(std::move(keys)),
      random_(random),
      environs_(std::make_unique<Environs>(event_queue, random)) {
  network_.connect(number_, *this);
  begin();
}

SimRelay::~SimRelay() = default;

void SimRelay::begin() {
  if (relay_ != nullptr) return;
  ++incarnation_;
  std::vector<std::unique_ptr<link::Link>> links;
  links_.clear();
  for (RailNumber rail = 0; rail < network_.rails(); ++rail) {
    auto link = std::make_unique<SimLink>(network_, number_, rail, incarnation_, kFrameMax, false);
    link->forward_packets();
    links_.push_back(link.get());
    links.push_back(std::move(link));
  }
  link_ = std::make_unique<multipath::LinkBundle>(std::move(links));
  relay_ = std::make_unique<relay::Relay>(std::vector<relay::JobRelayKeys>{keys_}, *link_,
                                          environs_->environment());
}

void SimRelay::die() {
  if (relay_ == nullptr) return;
  forwarded_ += relay_->totals().frames;
  dropped_ += relay_->totals().dropped;
  relay_.reset();
  link_.reset();
  links_.clear();
  next_poll_.cancel();
}

void SimRelay::handle_event(std::uint64_t note) {
  if (relay_ == nullptr || !next_poll_.begin(note)) return;
  while (relay_->poll() != 0) {
  }
}

bool SimRelay::deliver(std::unique_ptr<Packet>& packet) {
  if (relay_ == nullptr) return false;
  links_[packet->rail]->arrive(packet, Thinner::Place::engine);
  next_poll_.move_to(event_queue_.now() + random_.between(Duration{1}, kPollGap), event_queue_, *this);
  return true;
}

std::uint32_t SimRelays::draw_count(std::uint64_t seed) {
  return SeededRandom::stream(seed, kStreamRelays).chance(300'000) ? 1 : 2;
}

SimRelays::SimRelays(EventQueue& event_queue, SimNetwork& network, Trace& trace, std::uint32_t hosts,
                     std::uint32_t count, const seal::Credentials& credentials, Duration horizon,
                     std::uint64_t seed)
    : event_queue_(event_queue), network_(network), trace_(trace), hosts_(hosts) {
  SeededRandom random = SeededRandom::stream(seed, kStreamRelays, 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    relays_.push_back(std::make_unique<SimRelay>(event_queue, network, hosts + i,
                                                 relay::relay_keys(credentials.keys),
                                                 SeededRandom::stream(seed, kStreamRelay, i)));
  }
  // Host 0 and the last one are in different parts, and no other host has to be in any.
  std::vector<unsigned> parts(hosts + count);
  for (HostNumber host = 0; host < hosts; ++host)
    parts[host] = random.chance(200'000) ? 0 : static_cast<unsigned>(random.between(1, 2));
  parts[0] = 1;
  parts[hosts - 1] = 2;
  network_.divide(std::move(parts));
  description_ = count == 1 ? "a relay" : "two relays";
  const auto plan = [&](Event event, Duration from, Duration until) {
    event_queue_.plan(Time{} + random.between(from, until), *this, static_cast<std::uint64_t>(event));
  };
  if (count == 2 && random.chance(700'000)) {
    description_ += ", of which one dies";
    plan(Event::dies, Duration{0}, horizon);
    if (random.chance(500'000)) plan(Event::begins, horizon / 2, horizon);
  }
  if (random.chance(300'000)) {
    description_ += ", needed for a while";
    plan(Event::joined, horizon / 4, horizon);
  }
}

std::vector<SocketAddress> SimRelays::addresses() const {
  std::vector<SocketAddress> all;
  for (std::uint32_t i = 0; i < relays_.size(); ++i) all.push_back(address_of(hosts_ + i));
  return all;
}

std::uint64_t SimRelays::dropped() const {
  std::uint64_t sum = 0;
  for (const auto& relay : relays_) sum += relay->dropped();
  return sum;
}

void SimRelays::handle_event(std::uint64_t note) {
  if (healed_) return;
  switch (static_cast<Event>(note)) {
    case Event::dies: trace_.line("a relay dies"); return relays_.front()->die();
    case Event::begins: trace_.line("the relay begins anew"); return relays_.front()->begin();
    case Event::joined: trace_.line("the parts of the network are joined"); return network_.divide({});
  }
}

void SimRelays::heal() {
  healed_ = true;
  for (const auto& relay : relays_) relay->begin();
}

}  // namespace cluster::sim
