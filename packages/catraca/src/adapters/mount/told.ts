/** The request header by which a service learns what kind of answer is wanted. */
export const toldHeader = 'catraca-answer'
