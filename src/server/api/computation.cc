// Moves events from a job to its client as far as back-pressure allows, and ends the job when the client
// hangs up.
#include "server/api/computation.h"

#include <algorithm>
#include <new>
#include <utility>

namespace lattice::server {
namespace {

std::exception_ptr HungUp() {
  static const std::exception_ptr kReason = std::make_exception_ptr(ApiError(
      400, "the connection was closed by the client before the answer was complete", "", "client_closed"));
  return kReason;
}

// The error as the client may see it. An Error of the engine concerns this request only, so its message is
// passed on.
std::exception_ptr ForClient(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError&) {
    return error;
  } catch (const Error& other) {
    return std::make_exception_ptr(
        ApiError(500, StrCat("the model could not compute this request: ", other.what())));
  } catch (...) {
    return error;
  }
}

}  // namespace

void Computation::Start(Scheduler& scheduler, std::vector<Task> tasks, Clock::time_point deadline) {
  HungUp();
  job_ = std::make_shared<Job>(tasks.size(), call_->request.client, deadline, shared_from_this());
  call_->Defer();
  call_->reply->Listen(weak_from_this());
  int64_t prompt_tokens = 0;
  for (const Task& task : tasks)
    prompt_tokens += task.same_prompt_as < 0 ? static_cast<int64_t>(task.prompt.size()) : 0;
  call_->NoteTokens(prompt_tokens, 0);
  try {
    scheduler.Submit(job_, std::move(tasks));
  } catch (...) {
    job_->Disown();
    throw;
  }
  context_.accounts.Charge(call_->account(), prompt_tokens, Clock::now());
  context_.workers.Deliver(shared_from_this());
}

void Computation::CountChosen(const Event& event) {
  const int64_t chosen = std::count_if(event.tokens.begin(), event.tokens.end(),
                                       [](const TokenRecord& token) { return !token.prompt; });
  context_.accounts.Charge(call_->account(), chosen, Clock::now());
  call_->NoteTokens(0, chosen);
}

void Computation::TakeEvents() {
  if (!job_->failed() && call_->reply->HungUp()) {
    ++context_.metrics.disconnected;
    job_->Fail(HungUp());
  }
  if (!std::exchange(started_, true)) OnStart();
  while (!Full()) {
    std::optional<Event> event = job_->Take();
    if (!event) return;
    CountChosen(*event);
    OnEvent(*std::move(event));
  }
}

void Computation::Run() noexcept {
  if (done_) return;
  try {
    if (!broken_) TakeEvents();
  } catch (...) {
    broken_ = true;
    job_->Fail(std::current_exception());
  }
  while (broken_ && job_->Take()) {
  }
  if (job_->Finished()) Finish();
}

void Computation::Finish() noexcept {
  done_ = true;
  try {
    const std::exception_ptr error = job_->error();
    if (error == nullptr) {
      OnEnd();
    } else {
      OnFailure(ForClient(error));
    }
  } catch (...) {
    try {
      OnFailure(std::current_exception());
    } catch (...) {
      call_->reply->Abort();
    }
  }
}

}  // namespace lattice::server
