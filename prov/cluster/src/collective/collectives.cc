#include "collective/collectives.h"

#include <algorithm>
#include <stdexcept>

namespace cluster::collective {
namespace {

/// A failure that another member has announced, if it is one of ours.
Status status_from(std::uint64_t data) {
  const auto status = static_cast<Status>(data);
  return data > static_cast<std::uint64_t>(Status::ok) && data <= static_cast<std::uint64_t>(Status::access)
             ? status
             : Status::reset;
}

}  // namespace

CollectiveGroup& Collectives::join(std::vector<MemberAddress> members, Member self, JoinListener& listener) {
  const std::uint64_t instance = instances_[CollectiveGroup::identity(members, 0)]++;
  const std::uint64_t id = CollectiveGroup::identity(members, instance);
  auto& place = groups_[id];
  if (place != nullptr) throw std::runtime_error("two groups have one identity");
  place = std::make_unique<CollectiveGroup>(id, std::move(members), self);
  CollectiveGroup& group = *place;
  early_.erase(id);
  if (transport_.discard(GroupTag::failure_of(id).bits(), 0) > 0) failures_.push_back({&group, Status::reset});
  Operation& operation = group.begin(compose(group.layout(), {}));
  operation.join = &listener;
  begin(operation);
  return group;
}

Status Collectives::leave(CollectiveGroup& group) {
  for (auto& operation : group.operations()) operation->join = nullptr;
  if (!group.operations().empty()) fail(group, Status::canceled);
  advance();
  if (!group.operations().empty()) return Status::again;
  transport_.discard(GroupTag(group.id(), 0, 0).bits(), GroupTag::kAnyOfGroup);
  if (left_.size() == kLeftGroups) left_.pop_front();
  left_.push_back(group.id());
  std::erase_if(failures_, [&](const Failure& failure) { return failure.group == &group; });
  groups_.erase(group.id());
  return Status::ok;
}

Status Collectives::start(CollectiveGroup& group, const Arguments& arguments, void* context, bool report) {
  if (group.operations().size() >= kOperationsMax) return Status::again;
  Operation& operation = group.begin(compose(group.layout(), arguments));
  operation.context = context;
  operation.report = report;
  begin(operation);
  return Status::ok;
}

void Collectives::begin(Operation& operation) {
  if (operation.group.status() == Status::ok) {
    operation.run.begin([&](Step step, const Action&) { issue(operation.tickets[step]); });
  }
  finish_operations(operation.group);
  advance();
}

void Collectives::issue(Ticket& ticket) {
  Operation& operation = *ticket.operation;
  CollectiveGroup& group = operation.group;
  if (group.status() != Status::ok) return;
  const Action& action = operation.run.action(ticket.step);
  const std::uint64_t handle = group.address(action.member).handle;
  const std::uint64_t tag = GroupTag(group.id(), operation.number, action.number).bits();
  ++operation.in_flight;
  Status status = Status::ok;
  if (action.kind == Action::Kind::send) {
    protocol::SendOp op{.slices = {&action.source, 1}, .length = action.source.size(), .to = handle};
    op.context = &ticket;
    op.tag = tag;
    op.tagged = op.collective = true;
    op.inject = op.length <= protocol::kInjectMax;
    op.completion_level = protocol::CompletionLevel::inject;
    status = transport_.send(op);
  } else {
    ticket.awaited = true;
    protocol::RecvOp op{.slices = {&action.target, 1}, .from = handle, .context = &ticket, .tag = tag};
    op.tagged = op.collective = true;
    status = transport_.receive(op);
    if (status != Status::ok) ticket.awaited = false;
  }
  if (status == Status::ok) return;
  --operation.in_flight;
  if (status == Status::again) {
    blocked_.push_back(&ticket);
  } else {
    failures_.push_back({&group, status});
  }
  pending_ = true;
}

void Collectives::sent(void* context, Status status) {
  if (context == nullptr) return;  // the announcement of a failure
  outcomes_.push_back({static_cast<Ticket*>(context), status, 0});
  pending_ = true;
}

void Collectives::received(void* context, Status status, std::size_t length) {
  outcomes_.push_back({static_cast<Ticket*>(context), status, length});
  pending_ = true;
}

bool Collectives::wanted(std::uint64_t tag, std::uint64_t data) {
  const GroupTag parts(tag);
  const auto found = groups_.find(parts.group());
  if (found != groups_.end()) {
    if (!parts.is_failure()) return found->second->status() == Status::ok;
    failures_.push_back({found->second.get(), status_from(data)});
    pending_ = true;
    return false;
  }
  if (!joins_ || std::find(left_.begin(), left_.end(), parts.group()) != left_.end()) return false;
  if (early_.size() >= kEarlyGroups && !early_.contains(parts.group())) return false;
  return ++early_[parts.group()] <= kEarlyOfGroup;
}

void Collectives::member_lost(const SocketAddress& name, Status cause) {
  for (const auto& [id, group] : groups_) {
    if (group->find(name) == kNoMember) continue;
    failures_.push_back({group.get(), cause});
    pending_ = true;
  }
}

void Collectives::advance() {
  const std::vector<Ticket*> blocked = std::move(blocked_);
  blocked_.clear();
  for (Ticket* const ticket : blocked) issue(*ticket);
  while (!outcomes_.empty() || !failures_.empty()) {
    const std::vector<Failure> failures = std::move(failures_);
    failures_.clear();
    for (const Failure& failure : failures) fail(*failure.group, failure.status);
    const std::vector<Outcome> outcomes = std::move(outcomes_);
    outcomes_.clear();
    for (const Outcome& outcome : outcomes) settle(outcome);
  }
  pending_ = !blocked_.empty();
}

void Collectives::settle(const Outcome& outcome) {
  Operation& operation = *outcome.ticket->operation;
  CollectiveGroup& group = operation.group;
  --operation.in_flight;
  outcome.ticket->awaited = false;
  const Action& action = operation.run.action(outcome.ticket->step);
  Status status = outcome.status;
  // Members that do not agree on the length of an operation would otherwise go on with bytes that were never sent.
  if (status == Status::ok && action.kind == Action::Kind::receive && outcome.length != action.target.size())
    status = Status::truncated;
  if (status != Status::ok) {
    fail(group, status);
  } else if (group.status() == Status::ok) {
    operation.run.done(outcome.ticket->step, [&](Step step, const Action&) { issue(operation.tickets[step]); });
  }
  finish_operations(group);
}

void Collectives::fail(CollectiveGroup& group, Status status) {
  if (group.status() != Status::ok) return;
  group.set_failed(status);
  std::erase_if(blocked_, [&](const Ticket* ticket) { return &ticket->operation->group == &group; });
  for (const auto& operation : group.operations()) {
    for (const Ticket& ticket : operation->tickets)
      if (ticket.awaited) transport_.cancel(&ticket);
  }
  transport_.discard(GroupTag(group.id(), 0, 0).bits(), GroupTag::kAnyOfGroup);
  notify_neighbors(group);
  finish_operations(group);
}

void Collectives::notify_neighbors(const CollectiveGroup& group) {
  const std::size_t count = group.layout().size();
  const std::size_t self = group.layout().self();
  for (std::size_t distance = 1; distance < count; distance *= 2) {
    for (const std::size_t member : {(self + distance) % count, (self + count - distance) % count}) {
      protocol::SendOp op{.to = group.address(static_cast<Member>(member)).handle};
      op.tag = GroupTag::failure_of(group.id()).bits();
      op.data = static_cast<std::uint64_t>(group.status());
      op.tagged = op.has_data = op.collective = op.inject = true;
      op.completion_level = protocol::CompletionLevel::inject;
      transport_.send(op);  // to the lost one it fails
    }
  }
}

/// Those that are over are reported in the order in which they began, as far as they are at the front; a later one
/// that is over first is reported first.
void Collectives::finish_operations(CollectiveGroup& group) {
  auto& operations = group.operations();
  for (auto next = operations.begin(); next != operations.end();) {
    Operation& operation = **next;
    const bool over = operation.in_flight == 0 && (operation.run.finished() || group.status() != Status::ok);
    if (!over) {
      ++next;
      continue;
    }
    const std::unique_ptr<Operation> ended = std::move(*next);
    next = operations.erase(next);
    report(*ended, ended->run.finished() ? Status::ok : group.status());
  }
}

void Collectives::report(const Operation& operation, Status status) {
  CollectiveGroup& group = operation.group;
  if (operation.number == 0 && !group.complete()) {
    if (status == Status::ok) group.set_complete();
    if (operation.join != nullptr) operation.join->joined(status);
    return;
  }
  if (queue_ == nullptr || (!operation.report && status == Status::ok)) return;
  queue_->push({.context = operation.context, .kind = protocol::Completion::Kind::collective, .status = status});
}

}  // namespace cluster::collective
