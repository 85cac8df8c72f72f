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
  if (settings.shortcut) opening.features |= wire::feature::kEthertypePath;
  opening.window = std::clamp(settings.window, kWindowMin, kWindowMax);
  return opening;
}

std::vector<SocketAddress> further_addresses(const Identity& identity) {
  std::vector<SocketAddress> further;
  for (const multipath::Rail& rail : identity.rails) {
    if (rail.address != identity.name) further.push_back(rail.address);
  }
  return further;
}

}  // namespace

Flow::Rooms::Rooms(const FlowSettings& settings, const Identity& identity, const link::Path& path_to_peer,
                   const Environment& world, BodyPool& pool)
    : environment(world),
      rails(identity.rails, path_to_peer, std::clamp(settings.window, kWindowMin, kWindowMax), world.log),
      handshake(opening_of(settings, identity), further_addresses(identity)),
      bodies(pool),
      frames(handshake.ours().window),
      builder(bodies, frames),
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

std::size_t Flow::fragment_max(const wire::Segment& segment) const {
  return rooms_->builder.room_for(segment, rooms_->handshake.room());
}

std::size_t Flow::eager_limit() const {
  const std::size_t window = std::min(rooms_->rails.window(), rooms_->handshake.window());
  return window / 2 * rooms_->handshake.room();
}

bool Flow::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode hold,
                carrier::Token token) {
  return rooms_->post(segment, payload, hold, token);
}

bool Flow::may_coalesce() const {
  const Rooms& r = *rooms_;
  return r.frames.outstanding() != 0 && r.frames.queued() == 0 && r.builder.takes_another(r.handshake.room());
}

void Flow::transmit(Time now, link::Link& link) { rooms_->transmit(now, link); }

void Flow::accept_opening(const wire::FrameView& opening, link::Link& link) {
  rooms_->accept_opening(opening, link);
}

void Flow::answer_opening(const wire::FrameView& call, const link::Path& way_back, link::Link& link) {
  rooms_->answer_opening(call, way_back, link);
}

Flow::ReceiveResult Flow::receive(Time now, const wire::FrameView& view, const link::Path& from,
                                  Time arrived) {
  return rooms_->receive(now, view, from, std::min(arrived, now));
}

bool Flow::next(ConstBytes& segments) { return rooms_->next(segments); }

void Flow::hold(ConstBytes rest) { rooms_->arrivals.hold(rest); }

bool Flow::may_hold() const { return rooms_->arrivals.may_hold(); }

bool Flow::holding() const { return rooms_->arrivals.holding(); }

ConstBytes Flow::held() const { return rooms_->arrivals.held(); }

void Flow::resume(Time now) { rooms_->resume(now); }

void Flow::take_delivered(std::vector<carrier::Token>& tokens) {
  tokens.insert(tokens.end(), rooms_->delivered.begin(), rooms_->delivered.end());
  rooms_->delivered.clear();
}

Time Flow::deadline() const { return rooms_->deadline(); }

void Flow::on_timer(Time now) { rooms_->on_timer(now); }

void Flow::on_alive(Time now, const link::Path& from, bool by_engine) {
  rooms_->heard(now, from);
  rooms_->rails.answered(now, from, by_engine);
}

void Flow::on_path_error(Time now, const link::PathError& complaint) {
  rooms_->on_path_error(now, complaint);
}

bool Flow::wants_probe(Time now) { return rooms_->alive() && rooms_->liveness.wants_probe(now); }

Status Flow::status() const { return rooms_->status; }

bool Flow::quiet() const { return drained() && !rooms_->acks.owed(); }

bool Flow::drained() const { return rooms_->drained(); }

void Flow::close(Time now, link::Link& link) { rooms_->close(now, link); }

bool Flow::address_validated() const { return rooms_->handshake.address_validated(); }

std::uint32_t Flow::session() const { return rooms_->handshake.ours().session; }

std::uint32_t Flow::peer_session() const { return rooms_->handshake.peer_session(); }

std::uint64_t Flow::peer_epoch() const { return rooms_->handshake.peer_epoch(); }

std::span<const SocketAddress> Flow::validated_addresses() const {
  return rooms_->rails.validated_addresses();
}

const link::Path& Flow::path() { return rooms_->rails.next_validated(); }

FlowStats Flow::stats() const {
  const Rooms& r = *rooms_;
  return {.rails = r.rails.state(r.frames),
          .frame_max = r.handshake.frame_max(),
          .queued = r.frames.queued(),
          .sent = r.tally.sent,
          .retransmitted = r.tally.retransmitted,
          .lost = r.tally.lost,
          .heard_at = r.heard_at,
          .footprint =
              sizeof *this + sizeof r + r.frames.footprint() + r.arrivals.footprint() + r.rails.footprint()};
}

bool Flow::validates_reset(const wire::ResetBlock& block) const {
  // Before the peer's session is known frames carry 0, which a stranger can make up as well as their
  // sequence: so ours is quoted, which stands in their opening. Afterwards that counts no more; what was
  // refused meanwhile is repaired, and refused again.
  const bool met = peer_session() != 0;
  const bool addressed = block.session == (met ? peer_session() : session());
  // Another life of ours may have named the same session: the peer has that one for stale, and knows us.
  const bool for_another = met && block.reason == static_cast<std::uint8_t>(wire::ResetReason::stale_epoch) &&
                           block.epoch <= rooms_->handshake.ours().epoch;
  if (for_another) return false;
  const Sequence sequence{block.sequence};
  const Sequence transmission{block.transmission};
  if (addressed && rooms_->asked == transmission) return true;
  if (!addressed || !rooms_->frames.is_outstanding(sequence)) return false;
  return rooms_->frames.at(sequence).transmission == transmission ||
         rooms_->rails.remember(transmission, sequence);
}

}  // namespace cluster::reliability
