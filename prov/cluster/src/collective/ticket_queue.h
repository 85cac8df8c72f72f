// Messages of operations that wait for the same thing, in order. Each has its place in its ticket, so that to note one never needs
// memory; none waits in two queues.
#pragma once

#include <utility>

#include "collective/team.h"

namespace cluster::collective {

class TicketQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  void push_back(Ticket& ticket) {
    ticket.next = nullptr;
    (empty() ? first_ : last_->next) = &ticket;
    last_ = &ticket;
  }
  Ticket& pop_front() { return *std::exchange(first_, first_->next); }
  template <typename Matches>
  void erase_if(Matches&& matches) {
    for (TicketQueue all = std::exchange(*this, {}); !all.empty();) {
      Ticket& ticket = all.pop_front();
      if (!matches(ticket)) push_back(ticket);
    }
  }

 private:
  Ticket* first_ = nullptr;
  Ticket* last_ = nullptr;  ///< of a queue that is not empty
};

}  // namespace cluster::collective
