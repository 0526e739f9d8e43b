const src = 'packages/catraca/src'
const bucket = `${src}/algorithms/bucket/bucket.ts`
const counter = `${src}/algorithms/sliding-counter/sliding-counter.ts`
const ring = `${src}/algorithms/ring/ring.ts`
const fixed = `${src}/algorithms/fixed-window/fixed-window.ts`
const limiter = `${src}/limiter/limiter.ts`
const ledger = `${src}/stores/memory/memory-ledger.ts`
const enforcer = `${src}/policy/enforcer.ts`
const script = `${src}/stores/redis/script.generated.ts`
const redis = `${src}/stores/redis`
const failure = `${src}/stores/failure`

/** Defects of one line. Each, planted alone, must turn the suite red. */
export const mutants = [
  {
    name: 'estimate may equal the limit',
    file: counter,
    find: 'weighed >= (room + 1) * window',
    replace: 'weighed > (room + 1) * window',
  },
  {
    name: 'closed window',
    file: ring,
    find: 'tickOf(list, entries) <= gone',
    replace: 'tickOf(list, entries) < gone',
  },
  {
    name: 'stored time moved back',
    file: bucket,
    find: 'state[at] = now + this.lead(elapsed)\n    state[at + 1] = over',
    replace: 'state[at] = now\n    state[at + 1] = over',
  },
  {
    name: 'refund into a later window',
    file: fixed,
    find: 'if (state[at] !== charge.origin || now >= charge.origin + this.window) return 0',
    replace: '',
  },
  {
    name: 'refusal charged in a stack',
    file: ledger,
    find: 'passes ? cost : 0, nowUs, permit)',
    replace: 'waits[index] === 0 ? cost : 0, nowUs, permit)',
  },
  {
    name: 'life below full',
    file: bucket,
    find: 'return (state[at] as number) + ceilDiv(state[at + 1] as number, this.rate)',
    replace: 'return (state[at] as number) + ceilDiv((state[at + 1] as number) / 2, this.rate)',
  },
  {
    name: 'wait rounded down',
    file: bucket,
    find: 'return -(ceilDiv(over, this.rate) + this.lead(elapsed))',
    replace: 'return -(Math.floor(over / this.rate) + this.lead(elapsed))',
  },
  {
    name: 'cap forgotten',
    file: bucket,
    find: 'return level > gone ? level - gone : 0',
    replace: 'return level - gone',
  },
  {
    name: 'cost paid in part',
    file: bucket,
    find: 'return this.drained(elapsed, level) + cost * this.unit - this.capacity',
    replace: 'return this.drained(elapsed, level) + Math.min(cost, 1) * this.unit - this.capacity',
  },
  {
    name: 'permit not returned',
    file: limiter,
    find: 'if (one.source.rule.holds) this.ledger',
    replace: 'if (!one.source.rule.holds) this.ledger',
  },
  {
    name: 'quota boundary off by an hour at a clock change',
    file: `${src}/algorithms/quota/zone.ts`,
    find: 'if (wallAt(instant) === wallMs) return instant',
    replace: 'return instant',
  },
  {
    name: 'retry time from the full window',
    file: counter,
    find: 'return now - this.passesAt(start, current, prior, cost)',
    replace: 'return now - start - window',
  },
  {
    name: 'retry time of the newest entry',
    file: ring,
    find: 'return tickOf(list, last) - this.rebase(list, now) + this.life - now',
    replace: 'return this.time(list, now) + this.life - now',
  },
  {
    name: 'remaining rounded up',
    file: bucket,
    find: 'return over < 0 ? Math.floor((0 - over) / this.unit) : 0',
    replace: 'return over < 0 ? Math.ceil((0 - over) / this.unit) : 0',
  },
  { name: 'refund twice', file: limiter, find: 'decision.state |= settled\n', replace: '\n' },
  {
    name: 'refund of what has drained',
    file: bucket,
    find: 'const own = charge.level - elapsed * this.rate - since',
    replace: 'const own = charge.level - since',
  },
  {
    name: 'broken clock gives a fresh limit',
    file: fixed,
    find: 'return now >= origin + this.window ? 0 : level',
    replace: 'return now >= origin + this.window || origin - now > graceUs ? 0 : level',
  },
  {
    name: 'broken clock is believed',
    file: counter,
    find: 'origin + this.window && origin - now <= this.graceTicks',
    replace: 'origin + this.window',
  },
  {
    name: 'shaper does not delay',
    file: bucket,
    find: 'ceilDiv(this.drained(-lead, level) + cost * this.unit, this.rate)',
    replace: 'Math.floor((this.drained(-lead, level) + cost * this.unit) / this.rate)',
  },
  {
    name: 'peek takes',
    file: limiter,
    find: 'return this.ask(keys, options, false)',
    replace: 'return this.ask(keys, options, true)',
  },
  {
    name: 'limited keys are forgotten first',
    file: `${src}/stores/memory/memory-store.ts`,
    find: 'candidate.score < best.score',
    replace: 'candidate.score > best.score',
  },
  {
    name: 'two long keys are one',
    file: `${src}/stores/key.ts`,
    find: 'hashMark + sha256(key)',
    replace: 'key.slice(0, maxLength)',
  },
  {
    name: 'a clock reading outlives its turn',
    file: `${src}/core/clock.ts`,
    find: '  usesLeft = 0\n  armed = false',
    replace: '  armed = false',
  },
  {
    name: 'a rate is rounded',
    file: bucket,
    find: 'const unit = ticks / common',
    replace: 'const unit = Math.round(ticks / limit) * (limit / common)',
  },
  {
    name: 'remaining after a pass rounded up',
    file: bucket,
    find: 'return Math.floor((0 - over) / this.unit)\n',
    replace: 'return Math.ceil((0 - over) / this.unit)\n',
  },
  {
    name: 'refund of a charge from before a reset',
    file: ledger,
    find: 'if (decision.generation < (this.resets[policy]?.get(key) ?? 0)) return 0',
    replace: '',
  },
  {
    name: 'a later refusal keeps what earlier stages charged',
    file: enforcer,
    find: 'this.giveBack(verdict, facts.nowUs)\n    for',
    replace: 'for',
  },
  {
    name: 'attempts given back',
    file: enforcer,
    find: 'if (!policy.keepsAttempts || decision.source.rule.holds)',
    replace: 'if (true)',
  },
  {
    name: 'an observed policy displaces',
    file: enforcer,
    find: "policy.mode === 'enforce' && applies(policy, facts) && isOnRoute",
    replace: 'applies(policy, facts) && isOnRoute',
  },
  {
    name: 'one reading of a path is enough to displace',
    file: enforcer,
    find: 'isOnRoute(policy, facts, true)',
    replace: 'isOnRoute(policy, facts, false)',
  },
  {
    name: 'a failed credential has the limit for visitors',
    file: enforcer,
    find: "if (facts.failed && policy.identity === 'anonymous') return true",
    replace: '',
  },
  {
    name: 'the cost of a policy forgotten',
    file: enforcer,
    find: 'costs.push(policy.cost * facts.units)',
    replace: 'costs.push(facts.units)',
  },
  {
    name: 'an undeclared plan has no limit of its own',
    file: enforcer,
    find: 'return plan !== undefined && plans.has(plan) ? plan : defaultPlan',
    replace: 'return plan',
  },
  {
    name: 'parts of a key run together',
    file: `${src}/policy/key-part.ts`,
    find: '`${value.length}:${value}`',
    replace: 'value',
  },
  {
    name: 'a number and its text are two keys',
    file: `${src}/http/request-facts.ts`,
    find: '? String(value)',
    replace: '? JSON.stringify(value)',
  },
  {
    name: 'the address the caller claims',
    file: `${src}/http/trust.ts`,
    find: 'if (this.proxies === 0 || !this.peerIsTrusted) return this.peerAddress',
    replace: '',
  },
  {
    name: 'a refusal that a cache may keep',
    file: `${src}/http/answers.ts`,
    find: "'no-store'",
    replace: "'max-age=60'",
  },
  {
    name: 'the spread of Retry-After downwards',
    file: `${src}/http/retry-after.ts`,
    find: '1.1',
    replace: '0.9',
  },
  // The shared store. A test compares the script with what it is built from; it is left out, as it would catch anything.
  {
    name: 'script: bucket short of one level',
    file: script,
    find: 'passes = level + cost <= capacity',
    replace: 'passes = level + cost < capacity',
  },
  {
    name: 'script: estimate may equal the limit',
    file: script,
    find: 'prior * share < (limit - level - cost + 1) * window',
    replace: 'prior * share <= (limit - level - cost + 1) * window',
  },
  {
    name: 'script: closed window of a list',
    file: script,
    find: 'if ends > time then break end',
    replace: 'if ends >= time then break end',
  },
  {
    name: 'script: a broken clock is believed',
    file: script,
    find: 'elseif elapsed < -grace then',
    replace: 'elseif elapsed < -2 * grace then',
  },
  {
    name: 'script: what another rule counted is not taken over',
    file: script,
    find: 'level = math.max(level, debt)',
    replace: 'level = level',
  },
  {
    name: 'script: a conversion rounds for the caller',
    file: script,
    find: 'if rest > 0 then quotient = quotient + 1 end',
    replace: '',
  },
  {
    name: 'script: a refund gives more than was charged',
    file: script,
    find: 'give = math.min(asked * unit, own, l)',
    replace: 'give = math.min(asked * unit, l)',
  },
  {
    name: 'script: a quota counts the period before',
    file: script,
    find: 'if origin < start then\nlevel = 0',
    replace: 'if origin < start then\nlevel = level',
  },
  {
    name: 'key: lengths left out',
    file: `${redis}/keys.ts`,
    find: 'return `${text.length}:${text}`',
    replace: 'return text',
  },
  {
    name: 'deny cache: a refusal outlives its wait',
    file: `${redis}/deny-cache.ts`,
    find: 'Math.min(longestUs, decision.waitUs)',
    replace: 'longestUs',
  },
  {
    name: 'calls: sent through a client that is away',
    file: `${redis}/calls.ts`,
    find: "if (connection === 'away') {",
    replace: "if ((connection as string) === 'never') {",
  },
  {
    name: 'calls: a lost script is not sent again',
    file: `${redis}/calls.ts`,
    find: '!call.again && isUnknownScript(error)',
    replace: 'call.again && isUnknownScript(error)',
  },
  {
    name: 'deadline: answers that arrived are not read first',
    file: `${redis}/deadlines.ts`,
    find: 'afterPoll(() => this.end(now))',
    replace: 'this.end(now)',
  },
  {
    name: 'stack: charged where one refuses',
    file: `${redis}/question.ts`,
    find: 'const taken = charge && allPass(members, answer, mask)',
    replace: 'const taken = charge',
  },
  {
    name: 'permit of an abandoned call kept',
    file: `${redis}/ask.ts`,
    find: 'this.charge && numbers.length > 1 && this.holds',
    replace: 'this.charge && numbers.length < 1 && this.holds',
  },
  {
    name: 'unfit key taken for a store that is gone',
    file: `${redis}/fault.ts`,
    find: "const keyFaults = ['WRONGTYPE', 'CATRACA']",
    replace: "const keyFaults = ['CATRACA']",
  },
  {
    name: 'flush taken for a restart',
    file: `${redis}/pulse.ts`,
    find: "before.runId === runId ? 'flush' : 'restart'",
    replace: "before.runId === runId ? 'restart' : 'flush'",
  },
  {
    name: 'closed behaves as open',
    file: `${failure}/fallback.ts`,
    find: "modes[index] === 'closed' ? refuseClosed : passUncounted",
    replace: "modes[index] === ('never' as string) ? refuseClosed : passUncounted",
  },
  {
    name: 'share of one instance is the whole',
    file: `${failure}/share.ts`,
    find: 'Math.floor(units / instances)',
    replace: 'Math.floor(units / 1)',
  },
  {
    name: 'breaker: a success in between does not reset the row',
    file: `${src}/resilience/breaker/breaker.ts`,
    find: "this.current = 'closed'\n    this.row = 0",
    replace: "this.current = 'closed'",
  },
  {
    name: 'breaker: two trials at once',
    file: `${src}/resilience/breaker/breaker.ts`,
    find: "if (this.current === 'trial') return 'refuse'",
    replace: "if (this.current === 'trial') return 'trial'",
  },
]
