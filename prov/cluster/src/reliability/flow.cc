#include "reliability/flow.h"

#include <algorithm>

#include "reliability/flow_rooms.h"

namespace cluster::reliability {
namespace {

constexpr std::uint16_t kWindowMin = 8;
constexpr std::uint16_t kWindowMax = 4096;

wire::Opening opening_of(const FlowSettings& settings, const Identity& identity) {
  wire::Opening opening;
  opening.session = identity.session;
  opening.epoch = identity.epoch;
  opening.name = identity.name;
  opening.frame_max = static_cast<std::uint16_t>(std::clamp(settings.frame_max, kFrameMin, wire::kFrameMax));
  opening.window = std::clamp(settings.window, kWindowMin, kWindowMax);
  return opening;
}

}  // namespace

Flow::Rooms::Rooms(const FlowSettings& settings, const Identity& identity, const link::Path& path_to_peer,
                   const Environment& world, BodyPool& pool)
    : environment(world),
      path(path_to_peer),
      handshake(opening_of(settings, identity)),
      bodies(pool),
      frames(handshake.ours().window),
      builder(bodies, frames),
      congestion(handshake.ours().window),
      timer(settings.ack_delay),
      arrivals(handshake.ours().window),
      acks(settings.ack_delay),
      liveness(settings.peer_timeout) {}

Flow::Flow(const FlowSettings& settings, const Identity& identity, const link::Path& path,
           const Environment& environment, BodyPool& bodies)
    : rooms_(std::make_unique<Rooms>(settings, identity, path, environment, bodies)) {}

Flow::~Flow() = default;

std::size_t Flow::payload_max(const wire::Segment& segment) const {
  return rooms_->handshake.room() - wire::encoded_size(segment);
}

bool Flow::post(const wire::Segment& segment, const Gather& payload, protocol::Hold hold,
                protocol::Token token) {
  return rooms_->post(segment, payload, hold, token);
}

void Flow::transmit(Time now, link::Link& link) { rooms_->transmit(now, link); }

void Flow::introduce(const wire::FrameView& opening, link::Link& link) { rooms_->introduce(opening, link); }

void Flow::answer(const wire::FrameView& call, link::Link& link) { rooms_->answer(call, link); }

Flow::Verdict Flow::receive(Time now, const wire::FrameView& view, const link::Path& from) {
  return rooms_->receive(now, view, from);
}

bool Flow::next(ConstBytes& segments) { return rooms_->next(segments); }

void Flow::hold(ConstBytes rest) { rooms_->arrivals.hold(rest); }

bool Flow::holding() const { return rooms_->arrivals.holding(); }

ConstBytes Flow::held() const { return rooms_->arrivals.held(); }

void Flow::resume(Time now) { rooms_->resume(now); }

void Flow::take_delivered(std::vector<protocol::Token>& tokens) {
  tokens.insert(tokens.end(), rooms_->delivered.begin(), rooms_->delivered.end());
  rooms_->delivered.clear();
}

Time Flow::deadline() const { return rooms_->deadline(); }

void Flow::on_time(Time now) { rooms_->on_time(now); }

void Flow::on_alive(Time now) { rooms_->liveness.heard(now); }

void Flow::on_complaint(Time now, Fault complaint) { rooms_->on_complaint(now, complaint); }

bool Flow::wants_probe(Time now) { return rooms_->alive() && rooms_->liveness.wants_probe(now); }

Fault Flow::fault() const { return rooms_->fault; }

bool Flow::quiet() const { return drained() && !rooms_->acks.owed(); }

bool Flow::drained() const { return rooms_->drained(); }

void Flow::close(Time now, link::Link& link) { rooms_->close(now, link); }

bool Flow::confirmed() const { return rooms_->handshake.genuine(); }

std::uint32_t Flow::session() const { return rooms_->handshake.ours().session; }

std::uint32_t Flow::peer_session() const { return rooms_->handshake.peer_session(); }

std::uint64_t Flow::peer_epoch() const { return rooms_->handshake.peer_epoch(); }

const link::Path& Flow::path() const { return rooms_->path; }

FlowState Flow::state() const {
  const Rooms& r = *rooms_;
  const RailState rail{.to = r.path.to,
                       .round_trip = r.round_trip.smoothed(),
                       .round_trip_longest = r.round_trip.likely_longest(),
                       .window = r.congestion.window(),
                       .travelling = r.frames.travelling()};
  return {.rails = {rail},
          .frame_max = r.handshake.frame_max(),
          .queued = r.frames.queued(),
          .sent = r.tally.sent,
          .repaired = r.tally.repaired,
          .lost = r.tally.lost,
          .heard_at = r.liveness.heard_at(),
          .footprint =
              sizeof *this + sizeof r + r.frames.footprint() + r.arrivals.footprint() + r.losses.footprint()};
}

bool Flow::quoted_by(const wire::ResetBlock& block) const {
  // Before the peer's session is known frames carry 0, which a stranger can make up as well as their
  // sequence: so ours is quoted, which stands in their opening. Afterwards that counts no more; what was
  // refused meanwhile is repaired, and refused again.
  const bool addressed = block.session == (peer_session() != 0 ? peer_session() : session());
  const Sequence sequence{block.sequence};
  const Sequence transmission{block.transmission};
  if (addressed && rooms_->asked == transmission) return true;
  if (!addressed || !rooms_->frames.is_outstanding(sequence)) return false;
  return rooms_->frames.at(sequence).transmission == transmission ||
         rooms_->losses.remembers(transmission, sequence);
}

}  // namespace cluster::reliability
