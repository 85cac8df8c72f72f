#include "collective/collectives.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/end_of_memory.h"

namespace cluster::collective {
namespace {

/// Returns the status that another member has sent with its notice of a failure. Returns Status::reset if
/// this version does not know the status.
Status status_from(std::uint64_t data) {
  const auto status = static_cast<Status>(data);
  return data > static_cast<std::uint64_t>(Status::ok) && data <= static_cast<std::uint64_t>(Status::access)
             ? status
             : Status::reset;
}

}  // namespace

Team& Collectives::create(std::vector<MemberAddress> members, Member self, std::uint64_t key) {
  std::uint64_t& instance = instances_[Team::identity(members, key, 0)];
  const std::uint64_t id = Team::identity(members, key, instance);
  auto team = std::make_unique<Team>(id, std::move(members), self);
  team->begin(compose(team->layout(), {}));
  const auto [place, fresh] = teams_.try_emplace(id, std::move(team));
  if (!fresh) throw std::runtime_error("two teams have one identity");
  // Counts the instance only after success. If this call fails for lack of memory, the other members do not
  // count the failed call either.
  ++instance;
  return *place->second;
}

void Collectives::join(Team& team, JoinListener& listener) {
  std::erase_if(early_, [&](const Early& early) { return early.team == team.id(); });
  const bool failed = transport_.discard(TeamTag::failure_of(team.id()).bits(), 0) > 0;
  // If messages of this team were evicted before this join, one of them may have been the notice of a
  // failure.
  if (failed || has_left(team.id())) note_failure(team, Status::reset);
  Operation& operation = *team.operations().front();
  operation.join = &listener;
  begin(operation);
}

bool Collectives::has_left(std::uint64_t id) const {
  return std::find(left_.begin(), left_.end(), id) != left_.end();
}

void Collectives::forget(std::uint64_t id) {
  if (left_.size() == kLeftTeams) left_.pop_front();
  left_.push_back(id);
}

Team* Collectives::find(std::uint64_t id) const {
  const auto found = teams_.find(id);
  return found == teams_.end() ? nullptr : found->second.get();
}

Status Collectives::leave(Team& team) {
  for (auto& operation : team.operations()) operation->join = nullptr;
  if (!team.operations().empty()) note_failure(team, Status::canceled);
  advance();
  if (!team.operations().empty() || !team.unnotified().empty()) return Status::again;
  transport_.discard(TeamTag(team.id(), 0, 0).bits(), TeamTag::kAnyOfTeam);
  if (team.group()) transport_.close_group(*team.group());
  forget(team.id());
  if (team.failing()) --failing_;
  teams_.erase(team.id());
  return Status::ok;
}

Status Collectives::start(Team& team, const Arguments& arguments, void* context, bool report) {
  if (team.operations().size() >= kOperationsMax) return Status::again;
  Arguments possible = arguments;
  possible.multicast = transport_.has_multicast();
  possible.often = arguments.kind == Kind::broadcast && team.broadcasts_often();
  const bool spread =
      spreads(team.layout(), possible) && team.layout().leads() && team.status() == Status::ok;
  // All leaders open the group in the same operation of the team.
  if (spread && !team.group()) team.set_group(transport_.open_group(team.leaders(), team.id()));
  Operation& operation = team.begin(compose(team.layout(), possible));
  operation.awaits_group = spread && team.layout().node_of(possible.root) != team.layout().node();
  if (operation.awaits_group) transport_.expect(*team.group(), true);
  // A call that failed above for lack of memory must not count as a broadcast. The application repeats such a
  // call, and all members must have the same count.
  if (arguments.kind == Kind::broadcast) team.count_broadcast();
  operation.context = context;
  operation.report = report;
  // The operation has its number now, so start() must not fail any more: a repeated call would begin another
  // operation. If memory is short, a later advance() does the rest.
  begin(operation);
  return Status::ok;
}

void Collectives::begin(Operation& operation) {
  if (operation.team.status() == Status::ok) {
    operation.run.begin([&](Step step, const Action&) { issue(operation.tickets[step]); });
  }
  finish_operations(operation.team);
  enough_memory_for([&] { advance(); });
}

/// Sends the message of a step, or posts its receive. If there is no memory for this, the team fails at all
/// members.
void Collectives::issue(Ticket& ticket) {
  Operation& operation = *ticket.operation;
  Team& team = operation.team;
  if (team.status() != Status::ok) return;
  const Action& action = operation.run.action(ticket.step);
  const bool spreads = action.kind == Action::Kind::spread;
  const std::uint64_t handle = spreads ? *team.group() : team.address(action.member).handle;
  const std::uint64_t tag = TeamTag(team.id(), operation.number, action.number).bits();
  Status status = Status::no_memory;
  if (spreads && !transport_.group_joined(handle)) {
    status = Status::again;
  } else if (action.kind != Action::Kind::receive) {
    protocol::SendOp op{.slices = {&action.source, 1}, .length = action.source.size(), .to = handle};
    op.context = &ticket;
    op.tag = tag;
    op.tagged = op.internal = true;
    op.inject = op.length <= protocol::kInjectMax;
    // The buffer of a long multicast must stay valid until all members have acknowledged the message, because
    // the endpoint retransmits lost frames from the buffer. The endpoint copies a short multicast.
    op.completion_level = spreads && op.length > kLong ? protocol::CompletionLevel::transmit
                                                       : protocol::CompletionLevel::inject;
    enough_memory_for([&] { status = transport_.send(op); });
  } else {
    protocol::RecvOp op{.slices = {&action.target, 1}, .from = handle, .context = &ticket, .tag = tag};
    op.tagged = op.internal = true;
    enough_memory_for([&] { status = transport_.receive(op); });
    ticket.awaited = status == Status::ok;
  }
  if (status == Status::ok) {
    ++operation.in_flight;
    return;
  }
  if (status == Status::again) {
    blocked_.push_back(ticket);
    pending_ = true;
  } else {
    note_failure(team, status);
  }
}

void Collectives::sent(void* context, Status status) {
  if (context == nullptr) return;  // only a notice of a failure has no context
  received(context, status, 0);
}

void Collectives::received(void* context, Status status, std::size_t length) {
  Ticket& ticket = *static_cast<Ticket*>(context);
  ticket.status = status;
  ticket.length = length;
  outcomes_.push_back(ticket);
  pending_ = true;
}

/// Called for each message that no posted receive matches. Returns true if the protocol must store the
/// message. All members of a joined team are in the address vector. For a team that is not joined yet, the
/// sender may be outside the address vector (`member` is false). Messages of such senders are stored too, but
/// they do not evict messages of senders in the address vector.
bool Collectives::wanted(std::uint64_t tag, std::uint64_t data, bool member) {
  const TeamTag parts(tag);
  if (Team* const team = find(parts.team())) {
    if (!member) return false;
    if (!parts.is_failure()) return team->status() == Status::ok;
    note_failure(*team, status_from(data));
    return false;
  }
  if (!joins_ || has_left(parts.team()) || (parts.is_failure() && !member)) return false;
  auto early = std::find_if(early_.begin(), early_.end(),
                            [&](const Early& each) { return each.team == parts.team(); });
  if (early == early_.end()) {
    if (early_.size() == kEarlyTeams) {
      auto oldest =
          std::find_if(early_.begin(), early_.end(), [](const Early& each) { return !each.of_member; });
      if (oldest == early_.end()) {
        if (!member) return false;
        oldest = early_.begin();
      }
      evicted_.push_back(oldest->team);
      forget(evicted_.back());
      early_.erase(oldest);
      pending_ = true;
    }
    early_.push_back({parts.team(), 0, member});
    early = std::prev(early_.end());
  }
  return ++early->messages <= kEarlyOfTeam;
}

void Collectives::member_lost(const SocketAddress& name, Status cause) {
  for (const auto& [id, team] : teams_) {
    if (team->find(name) != kNoMember) note_failure(*team, cause);
  }
}

/// Issues the blocked steps again. Steps that are blocked again keep their order.
void Collectives::issue_blocked() {
  TicketQueue waiting = std::exchange(blocked_, {});
  while (!waiting.empty()) issue(waiting.pop_front());
}

void Collectives::advance() {
  pending_ = true;
  issue_blocked();
  if (notices_blocked_) notify_again();
  while (!outcomes_.empty() || failing_ != 0) {
    if (failing_ != 0) spread_failures();
    // Spreads new failures before it settles other results. Otherwise those results could begin steps, which
    // the failure would only cancel.
    while (!outcomes_.empty() && failing_ == 0) settle(outcomes_.pop_front());
  }
  for (; !evicted_.empty(); evicted_.pop_back())
    transport_.discard(TeamTag(evicted_.back(), 0, 0).bits(), TeamTag::kAnyOfTeam);
  pending_ = !blocked_.empty() || notices_blocked_;
}

void Collectives::settle(Ticket& ticket) {
  Operation& operation = *ticket.operation;
  Team& team = operation.team;
  --operation.in_flight;
  ticket.awaited = false;
  const Action& action = operation.run.action(ticket.step);
  Status status = ticket.status;
  // A message can be shorter than its buffer if the members disagree about the length of the operation. The
  // operation must not continue with bytes that were never sent.
  if (status == Status::ok && action.kind == Action::Kind::receive && ticket.length != action.target.size())
    status = Status::truncated;
  if (status != Status::ok) {
    note_failure(team, status);
  } else if (team.status() == Status::ok) {
    operation.run.done(ticket.step, [&](Step step, const Action&) { issue(operation.tickets[step]); });
  }
  finish_operations(team);
}

void Collectives::note_failure(Team& team, Status cause) {
  if (!team.note_failure(cause)) return;
  ++failing_;
  pending_ = true;
}

/// Searches again after each failure, because fail() calls listeners, and a listener may create or leave
/// teams.
void Collectives::spread_failures() {
  for (;;) {
    const auto next = std::ranges::find_if(teams_, [](const auto& each) { return each.second->failing(); });
    if (next == teams_.end()) return;
    fail(*next->second);
  }
}

/// Cancels the work of a failed team, and notifies the neighbors of this member in the team: the members 1,
/// 2, 4, ... positions before and after it. If memory is short, the next advance() calls this function again.
/// A member that receives two notices drops the second.
void Collectives::fail(Team& team) {
  team.set_failed();
  blocked_.erase_if([&](const Ticket& ticket) { return &ticket.operation->team == &team; });
  for (const auto& operation : team.operations()) {
    for (const Ticket& ticket : operation->tickets)
      if (ticket.awaited) transport_.cancel(&ticket);
  }
  transport_.discard(TeamTag(team.id(), 0, 0).bits(), TeamTag::kAnyOfTeam);
  const std::size_t count = team.layout().size();
  const std::size_t self = team.layout().self();
  team.unnotified().clear();
  for (std::size_t distance = 1; distance < count; distance *= 2) {
    for (const std::size_t member : {(self + distance) % count, (self + count - distance) % count})
      team.unnotified().push_back(static_cast<Member>(member));
  }
  notify(team);
  notices_blocked_ |= !team.unnotified().empty();
  team.set_failure_spread();
  --failing_;
  finish_operations(team);
}

/// Sends the notices of a failure that the transport accepts now. The next advance() sends the others. A send
/// fails if it is for the lost member.
void Collectives::notify(Team& team) {
  std::erase_if(team.unnotified(), [&](Member member) {
    protocol::SendOp op{.to = team.address(member).handle};
    op.tag = TeamTag::failure_of(team.id()).bits();
    op.data = static_cast<std::uint64_t>(team.status());
    op.tagged = op.has_data = op.internal = op.inject = true;
    op.completion_level = protocol::CompletionLevel::inject;
    return transport_.send(op) != Status::again;
  });
}

void Collectives::notify_again() {
  const auto blocked = [](const auto& each) { return !each.second->unnotified().empty(); };
  for (const auto& [id, team] : teams_) notify(*team);
  notices_blocked_ = std::ranges::any_of(teams_, blocked);
}

/// Reports and removes each operation that has ended, the oldest first.
void Collectives::finish_operations(Team& team) {
  auto& operations = team.operations();
  const auto over = [&](const std::unique_ptr<Operation>& each) {
    return !each->reported && each->in_flight == 0 && (each->run.finished() || team.status() != Status::ok);
  };
  for (;;) {  // a report may begin another operation, which calls this function recursively
    const auto next = std::ranges::find_if(operations, over);
    if (next == operations.end()) return;
    Operation& operation = **next;
    operation.reported = true;
    report(operation, operation.run.finished() ? Status::ok : team.status());
    if (operation.awaits_group) transport_.expect(*team.group(), false);
    std::erase_if(operations,
                  [&](const std::unique_ptr<Operation>& each) { return each.get() == &operation; });
  }
}

void Collectives::report(const Operation& operation, Status status) {
  Team& team = operation.team;
  if (operation.number == 0 && !team.complete()) {
    if (operation.join != nullptr) operation.join->joined(status);
    if (status == Status::ok) team.set_complete();
    return;
  }
  if (queue_ == nullptr || (!operation.report && status == Status::ok)) return;
  queue_->push(
      {.context = operation.context, .kind = protocol::Completion::Kind::collective, .status = status});
}

}  // namespace cluster::collective
