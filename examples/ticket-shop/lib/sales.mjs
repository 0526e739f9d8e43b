const daysOfMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Tickets sold on a day of 2026, the same every time. */
function soldOn(month, day) {
  return 40 + ((month * 31 + day * 7) % 60)
}

/**
 * Tickets sold in 2026.
 * @param {'day' | 'month'} by
 * @returns {{ date: string, tickets: number }[]}
 */
export function sales(by) {
  return daysOfMonth.flatMap((days, month) => {
    const date = `2026-${String(month + 1).padStart(2, '0')}`
    const perDay = Array.from({ length: days }, (_, index) => {
      return { date: `${date}-${String(index + 1).padStart(2, '0')}`, tickets: soldOn(month, index + 1) }
    })
    return by === 'day' ? perDay : [{ date, tickets: perDay.reduce((sum, { tickets }) => sum + tickets, 0) }]
  })
}
